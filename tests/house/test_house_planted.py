# SPDX-License-Identifier: Apache-2.0
"""Each check of the tree finds a fault planted for it, and only there."""

import pytest
from house_env import ROOT
import house_tree
from house_tree import Source

LONG = "x = 1\n" * 701
BODY = "  f();\n" * 49
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
PUBLIC = "include/isthmus/isthmus.h"
GOOD = ("// Makes it. Gives *out. Fails: ARGUMENT. Threads: any.\n"
        "// Since: 0.1.\nIST_API int ist_make(void);\n")

# check, path, faulty text, the same put right
PLANTED = [
    ("include_law", "src/base/a.c", '#include "tensor/view.h"\n',
     '#include "base/error.h"\n'),
    ("include_law", "src/io/a.c", '#include "dlpack/dlpack_read.h"\n',
     '#include "tensor/view.h"\n'),
    ("include_law", "src/backend/pjrt/a.c", '#include "bridge/route.h"\n',
     '#include "backend/pjrt/call.h"\n'),
    ("include_law", "src/bridge/a.c", '#include "cli/cli.h"\n',
     '#include "backend/backend.h"\n'),
    ("include_law", "cli/a.c", '#include "tests/support/x.h"\n',
     '#include "bridge/tensor.h"\n'),
    ("include_law", "include/isthmus/dlpack.h",
     "#include <isthmus/isthmus.h>\n", "#include <isthmus/version.h>\n"),
    ("spdx", "src/base/a.c", "// a.c: what it is for.\n", SPDX),
    ("spdx", "tools/a.py", "#!/usr/bin/env python3\n",
     "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n"),
    ("file_length", "tools/a.py", LONG, LONG[6:]),
    ("function_length", "src/base/a.c",
     "static int a(int b,\n             int c) {\n" + BODY + "}\n",
     "static int a(int b) {\n" + BODY[14:] + "}\n"),
    ("function_length", "tools/a.py", "def a():\n" + "    f()\n" * 49,
     "def a():\n" + "    f()\n" * 48),
    ("unique_names", "src/io/alloc.c", "", None),
    ("unique_names", "src/io/CamelCase.c", "", None),
    ("name_length", "src/base/a.c", "int " + "a" * 41 + ";\n",
     "int " + "a" * 40 + ";\n"),
    ("header_promises", PUBLIC, GOOD.replace("Threads: any.", ""), GOOD),
    ("header_promises", PUBLIC, GOOD.replace("Gives *out. ", ""), GOOD),
    ("header_promises", PUBLIC, "IST_API int ist_make(void);\n", GOOD),
    ("allocation", "src/io/a.c", "p = malloc (4);\n",
     "// malloc(4)\np = ist__alloc(e, 4, 1);\n"),
    ("allocation", "src/io/a.c", "free(p);\n", "ist__free(e, p);\n"),
    ("allocation", "cli/a.c", "p = strdup(s);\n", "p = keep(s);\n"),
    ("slots", "src/bridge/a.c", "b->ops->copy_in(b);\n",
     "ist__backend_copy_in(b);\n"),
    ("slots", "src/backend/pjrt/a.c", "api->PJRT_Client_Create(&a);\n",
     "ist__pjrt_call(x);\n"),
    ("slots", "src/backend/pjrt/a.c",
     "e = table->slot[IST_SLOT_Client_Create] (&a);\n",
     "stored = table->slot[IST_SLOT_Client_Create];\n"),
    ("any_thread", "src/io/a.c", "say(strerror(errno));\n",
     "say(ist__errno_text_make(errno).text);  // not strerror()\n"),
    ("promises", "tests/base/a_test.c", "cmocka_unit_test(test_3),",
     "cmocka_unit_test(alloc__fails_when_told),"),
    ("promises", "tests/py/test_a.py", "def test_1():\n",
     "def test_empty__is_aligned():\n"),
    ("todo", "src/base/a.c", "// TO" + "DO: later\n",
     "// TO" + "DO(#12): later\n"),
    ("places", "docs/a.md", "see /wor" + "k/main\n", "see src/\n"),
]


@pytest.mark.parametrize("name, path, faulty, right", PLANTED)
def test_a_planted_fault__is_found(name, path, faulty, right):
    check = getattr(house_tree, name)
    others = [Source("src/base/alloc.c", SPDX)]
    assert len(list(check(others + [Source(path, faulty)]))) == 1
    if right is not None:
        assert list(check(others + [Source(path, right)])) == []


def test_every_check__has_a_planted_fault():
    assert {check.__name__ for check in house_tree.CHECKS} == {
        name for name, *_ in PLANTED}


def test_the_function_counter__sees_every_function():
    text = (ROOT / "src/base/alloc.c").read_text()
    names = {name for name, _, _ in house_tree.c_functions(text)}
    assert {"ist__alloc", "ist__free", "ist__malloc_allocator"} <= names
