# SPDX-License-Identifier: Apache-2.0
"""isthmus.Error, its catalog entry, explain, and names of later versions."""

import copy
import pickle

import pytest

import isthmus


def refused():
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(object())
    return e.value


def test_errors__carry_code_entry_and_hint():
    error = refused()
    assert error.code == 116
    assert error.entry.name == "IST_ERR_NOT_A_TENSOR"
    assert error.entry.slug == "not-a-tensor"
    assert error.hint == error.entry.solution and error.hint
    assert str(error) == error.args[0]


def test_errors__hint_first_at_what_python_code_does():
    moved = 0
    for code in range(1000):
        entry = isthmus.explain(code)
        if entry is None:
            continue
        hint = isthmus.Error("x", code).hint.splitlines()
        advice = entry.solution.splitlines()
        assert sorted(hint) == sorted(advice)
        moved += hint != advice
        if not hint[0].startswith("In C") and "ist_" not in hint[0]:
            continue
        assert "isthmus." in hint[0] or all(
            "ist_" in line or "IST_" in line for line in advice)
    assert moved


def test_errors__are_numbered_as_in_the_catalog():
    from isthmus import _errors
    names = [n for n in vars(_errors) if n.isupper() and n[0] != "_"]
    assert len(names) > 10
    for name in names:
        entry = isthmus.explain(f"IST_ERR_{name}")
        assert entry.code == getattr(_errors, name)
    for code in _errors._REFUSALS:
        assert isthmus.explain(code).code == code


def test_errors__survive_pickle_and_copy():
    for other in (pickle.loads(pickle.dumps(refused())), copy.copy(refused())):
        assert isinstance(other, isthmus.Error)
        assert isinstance(other, BufferError) and other.code == 116
        assert str(other) == str(refused())


@pytest.mark.parametrize("name", [
    "a\nb\tc", "\u00e9" * 300, "x" * 2000, "", "\ud800", "%s%n"])
def test_errors__stay_one_line_whatever_a_type_is_called(name):
    hostile = type("Hostile", (), {})
    hostile.__qualname__ = name
    for attribute in (None, "__dlpack__", "__array_interface__"):
        if attribute is not None:
            setattr(hostile, attribute, 17)
        with pytest.raises(isthmus.Error) as e:
            isthmus.from_dlpack(hostile())
        text = str(e.value)
        assert text.isprintable() or "\ufffd" in text
        assert len(text.splitlines()) == 1 and len(text) < 504


def test_errors__stay_one_line_whatever_a_capsule_is_called():
    from capsule_maker import Producer, _api
    producer = Producer()
    for name in (b"a\nb", b"\xff\xfe", b"x" * 2000, b""):
        capsule = _api.PyCapsule_New(1, name, None)
        with pytest.raises(isthmus.Error) as e:
            isthmus.from_dlpack(capsule)
        assert e.value.code == 116
        assert len(str(e.value).splitlines()) == 1
    assert producer.freed == 0


def test_errors__of_no_exchange_are_no_buffer_errors():
    with pytest.raises(isthmus.Error) as e:
        isthmus.open("nothing")
    assert not isinstance(e.value, BufferError)


def test_explain__finds_codes_names_and_errors():
    for what in (202, "202", "IST_ERR_SHAPE"):
        entry = isthmus.explain(what)
        assert entry.code == 202 and entry.name == "IST_ERR_SHAPE"
        assert entry.meaning and entry.solution and entry.title
    assert isthmus.explain(refused()).code == 116
    for what in (0, 1, -5, 10**30, "999", "IST_ERR_NOTHING"):
        assert isthmus.explain(what) is None


def test_explain__finds_our_own_messages():
    for call in (lambda: isthmus.from_dlpack(object()),
                 lambda: isthmus.open("nothing"),
                 lambda: isthmus.load("none.npy")):
        with pytest.raises(isthmus.Error) as e:
            call()
        entry = isthmus.explain(str(e.value))
        assert entry == e.value.entry == isthmus.explain(e.value)
        log = f"Traceback:\n  x\nisthmus.Error: {e.value}\n"
        assert isthmus.explain(log) == entry
        assert isthmus.explain(ValueError(log)) == entry
    assert isthmus.explain("it failed [IST_ERR_SHAPE 202]").code == 202
    assert isthmus.explain("file-format").name == "IST_ERR_FILE_FORMAT"


@pytest.mark.parametrize("what", [
    "DLPack is supported for PjRt-compatible backends only.",
    "This operation is implemented for a PjRt-compatible backend only.",
    "", "\0", "\ud800", ValueError("x"), ValueError()])
def test_explain__knows_no_messages_of_others(what):
    assert isthmus.explain(what) is None


@pytest.mark.parametrize("what", [None, 1.5, b"202"])
def test_explain__refuses_what_is_no_text(what):
    with pytest.raises(isthmus.Error) as e:
        isthmus.explain(what)
    assert e.value.code == 101


@pytest.mark.parametrize("name", [
    "shards", "from_shards", "explain_nearest"])
def test_later_names__are_refused_and_listed_nowhere(name):
    with pytest.raises(isthmus.Error, match="not in this version") as e:
        getattr(isthmus, name)
    assert e.value.code == 102
    assert not hasattr(isthmus, name)
    assert name not in dir(isthmus) and name not in isthmus.__all__


def test_unknown_names__are_plain_attribute_errors():
    with pytest.raises(AttributeError) as e:
        isthmus.nothing
    assert not isinstance(e.value, isthmus.Error)
