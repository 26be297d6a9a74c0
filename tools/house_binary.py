# SPDX-License-Identifier: Apache-2.0
"""The laws of the tree that can be read off what was built.

Needs binutils. Each function takes the path of a built file.
"""

import re
import subprocess

# Files that may hold state, since callbacks of others carry none for them;
# each says so in its first lines.
STATEFUL = ("tap.c.o", "exchange_api.c.o")
# What the shared library may link: libc in its parts, and the loader.
LIBRARIES = ("libc.so.6", "libdl.so.2", "libpthread.so.0")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


def writable(archive):
    """(object, symbol) of each variable that can change after start-up."""
    member = ""
    for line in output("objdump", "-t", archive).splitlines():
        if line.endswith("file format elf64-x86-64") or ": " in line:
            member = line.split(":")[0]
            continue
        match = re.match(r"[0-9a-f]{16} (.{7}) (\S+)\t[0-9a-f]+\s+(.*)$", line)
        if not match or "O" not in match.group(1):
            continue
        section, name = match.group(2), match.group(3).split()[-1]
        if section.startswith(".data.rel.ro"):
            continue
        if re.match(r"\.(data|bss|tdata|tbss)|\*COM\*", section):
            if member not in STATEFUL:
                yield member, name


def exported(shared):
    """The names of the symbols that a shared library exports, sorted."""
    lines = output("nm", "-D", "--defined-only", shared).splitlines()
    return sorted(line.split()[-1] for line in lines)


def needed(shared):
    """The libraries that a shared library asks the loader for."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", shared))


def soname(shared):
    return re.findall(r"\(SONAME\).*\[(.+)\]", output("readelf", "-d",
                                                      shared))[0]


def declared(headers):
    """The names of the functions that public headers declare, sorted."""
    names = []
    for text in headers:
        names += re.findall(r"^IST_API\s+[^;]*?\b(ist_\w+)\(", text, re.M)
    return sorted(names)
