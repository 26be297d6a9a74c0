# SPDX-License-Identifier: Apache-2.0
"""Gives tests out to the workers of pytest-xdist: one by one, but a file whose
tests share what is dear to make goes to one worker as a whole. And sees to it
that signals are as in a terminal: under nohup, or in the background of a
script, SIGHUP, SIGINT and SIGQUIT come ignored, and so would they in every
command that a test starts and signals."""

import signal

import pytest

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# They build the wheel, the library, the example.
WHOLE = ("packaging/test_wheel.py", "packaging/test_install.py",
         "examples/test_c_roundtrip.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByFileWhereDear(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.split("::")[0]
            return path if path.endswith(WHOLE) else nodeid

    return ByFileWhereDear(config, log)
