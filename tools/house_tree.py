# SPDX-License-Identifier: Apache-2.0
"""The laws of the tree that can be read off its text.

Each check takes a list of Source (path, text) and yields complaints, one line
each. tests/house/ runs them on the tree and on planted faults.
"""

import ast
import pathlib
import re
import subprocess
from typing import NamedTuple

C_ENDS = (".c", ".h", ".def")
CODE_ENDS = C_ENDS + (".py", ".pyi", ".sh", ".cmake", ".toml", ".in")
CODE_NAMES = ("dev", "run", "CMakeLists.txt", ".clang-format", ".gitignore")
# Written by machines, or prescribed by others.
MADE = ("src/base/catalog_text.def",)

# The order of the folders: a folder includes only from its left. Folders of
# the same rank do not see each other.
RANKS = {"base": 0, "tensor": 1, "dlpack": 2, "io": 2, "backend": 3,
         "bridge": 4}
LEAVES = ("cli", "python", "tests", "bench", "examples")
# Names that others gave: theirs may be as long as they like.
FOREIGN_LISTS = ("src/backend/pjrt/slots.def", "src/backend/pjrt/structs.def",
                 "src/backend/pjrt/program_structs.def",
                 "src/backend/pjrt/transfer_structs.def",
                 "src/backend/pjrt/extension_structs.def")
FOREIGN = ("PJRT_", "IST_SLOT_", "DLPACK_", "kDL",
           "overridden_serialized_compile_options")
PUBLIC = ("version.h", "dlpack.h", "error.h", "dtype.h", "geometry.h",
          "context.h", "program.h", "isthmus.h", "backend.h", "pjrt.h")


class Source(NamedTuple):
    path: str
    text: str

    @property
    def name(self):
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_c(self):
        return self.path.endswith(C_ENDS)

    @property
    def is_code(self):
        return self.path.endswith(CODE_ENDS) or self.name in CODE_NAMES


def read_tree(root):
    """Every text file that is, or is about to be, under version control."""
    root = pathlib.Path(root)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root,
        capture_output=True, text=True, check=True).stdout.split("\0")
    sources = []
    for path in sorted(set(filter(None, listed))):
        try:
            sources.append(Source(path, (root / path).read_text()))
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
    return sources


def bare(text):
    """C text without its comments and the content of its strings."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def blank(match):
        found = match.group(0)
        if found.startswith("/"):
            return "\n" * found.count("\n")
        return '""'
    return re.sub(pattern, blank, text, flags=re.S)


def folder_of(path):
    """("src", folder) or ("leaf", folder) or None for the folder law."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return "src", parts[1]
    return ("leaf", parts[0]) if parts[0] in LEAVES else None


def include_law(sources):
    """A folder includes only from its left."""
    for source in sources:
        if not source.is_c:
            continue
        if source.path.startswith("include/isthmus/"):
            yield from public_law(source)
            continue
        where = folder_of(source.path)
        if where is None:
            continue
        for found in re.findall(r'^\s*#\s*include\s+"([^"]+)"', source.text,
                                re.M):
            target = found.split("/")[0] if "/" in found else where[1]
            if not may_include(where, target):
                yield f"{source.path}: includes {found}, which is not left"


def may_include(where, target):
    kind, folder = where
    if target == folder:
        return True
    if target not in RANKS:
        return kind == "leaf" and folder == "tests"
    return kind == "leaf" or RANKS[target] < RANKS[folder]


def public_law(source):
    own = source.name
    for found in re.findall(r'#\s*include\s+[<"]isthmus/([^>"]+)', source.text):
        if PUBLIC.index(found) >= PUBLIC.index(own):
            yield f"{source.path}: includes isthmus/{found}, not left of it"


def spdx(sources):
    """The licence stands on the first line (after #!) of each source."""
    for source in sources:
        if source.is_code and source.text:
            lines = source.text.splitlines()
            if source.path.endswith(".pc.in"):
                continue
            line = "".join(lines[1:2]) if lines[0][:2] == "#!" else lines[0]
            if "SPDX-License-Identifier: Apache-2.0" not in line:
                yield f"{source.path}: no SPDX line first"


def file_length(sources, most=700):
    for source in sources:
        lines = source.text.count("\n")
        if source.is_code and source.path not in MADE and lines > most:
            yield f"{source.path}: {lines} lines; needs at most {most}"


def c_functions(text):
    """(name, first line, lines) of each function of a formatted C file."""
    lines = bare(text).splitlines()
    start, in_body = None, False
    for number, line in enumerate(lines):
        if re.match(r"[A-Za-z_].*[({,]\s*$|[A-Za-z_].*\).*\{$", line):
            if start is None:
                start, in_body = number, False
        if line.rstrip().endswith("{"):
            in_body = True
        if line.startswith("}") or line.rstrip().endswith(";"):
            if line == "}" and start is not None:
                head = " ".join(lines[start:start + 8])
                match = re.search(r"(\w+)\s*\(", head)
                if match and "=" not in head.split("(")[0]:
                    yield match.group(1), start + 1, number - start + 1
            # A declaration of several lines ends on an indented one.
            if not line.startswith(" ") or not in_body:
                start = None


def function_length(sources, most=50):
    for source in sources:
        found = []
        if source.path.endswith((".c", ".h")):
            found = list(c_functions(source.text))
        elif source.path.endswith(".py"):
            found = [(node.name, node.lineno, node.end_lineno - node.lineno + 1)
                     for node in ast.walk(ast.parse(source.text))
                     if isinstance(node, (ast.FunctionDef,
                                          ast.AsyncFunctionDef))]
        for name, line, lines in found:
            if lines >= most:
                yield (f"{source.path}:{line}: {name} has {lines} lines; "
                       f"needs fewer than {most}")


def unique_names(sources):
    """A name says which file is meant; .c and .h of a module share theirs.

    A public header may be called as the module that it speaks for.
    """
    seen = {}
    for source in sources:
        if not source.path.endswith((".c", ".h", ".def", ".py", ".sh")):
            continue
        if source.name in ("__init__.py", "__main__.py", "conftest.py"):
            continue
        if source.path.startswith("abi/"):
            continue
        if not re.fullmatch(r"[a-z0-9_-]+\.[a-z]+", source.name):
            yield f"{source.path}: its name is not lower_snake"
        key = source.path.startswith("include/"), source.name
        if key in seen:
            yield f"{source.path}: {seen[key]} has the same name"
        seen[key] = source.path


def name_length(sources, most=40):
    """No name of the library or the command is longer than 40 characters."""
    for source in sources:
        if source.path in FOREIGN_LISTS:
            continue
        if source.is_c and source.path.startswith(("src/", "include/", "cli/")):
            text = re.sub(r"^\s*#(if|ifn|)def.*_H_.*$", "", bare(source.text),
                          flags=re.M)
            for name in sorted(set(re.findall(r"\b[A-Za-z_]\w+\b", text))):
                if len(name) > most and not name.startswith(FOREIGN):
                    yield f"{source.path}: {name} is longer than {most}"


def header_promises(sources):
    """Ownership, Fails, Threads and Since on every public function."""
    words = ("Borrows", "Retains", "Takes", "Gives", "Lends")
    for source in sources:
        if not source.path.startswith("include/isthmus/"):
            continue
        pattern = r"((?:^//.*\n)*)^IST_API\s+([^;]*?)\b(ist_\w+)\("
        for comment, _, name in re.findall(pattern, source.text, re.M):
            missing = [word for word in ("Fails:", "Threads:", "Since:")
                       if word not in comment]
            if not any(word in comment for word in words):
                missing.append("an ownership word")
            if missing:
                yield f"{source.path}: {name}: lacks {', '.join(missing)}"


def allocation(sources):
    """Only base/alloc.c calls the C allocator."""
    calls = (r"\b(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|"
             r"strdup|strndup|asprintf|vasprintf|alloca)\s*\(")
    for source in sources:
        if source.path.startswith(("src/", "cli/", "python/")) and \
                source.is_c and source.path != "src/base/alloc.c":
            for found in re.findall(calls, bare(source.text)):
                yield f"{source.path}: calls {found}"


def slots(sources):
    """Only backend.c calls backend slots, only pjrt/call.c those of PJRT."""
    for source in sources:
        if not source.is_c or not source.path.startswith(
                ("src/", "cli/", "python/")):
            continue
        text = bare(source.text)
        if source.path != "src/backend/backend.c":
            for found in re.findall(r"\bops(?:->|\.)(\w+)\s*\(", text):
                yield f"{source.path}: calls the backend slot {found}"
        if source.path != "src/backend/pjrt/call.c":
            for found in re.findall(r"(?:->|\.)(PJRT_\w+|slot\[[^]]*\])\s*\(",
                                    text):
                yield f"{source.path}: calls the plugin slot {found}"


def any_thread(sources):
    """The library calls nothing that answers in a buffer all threads share.
    Not readdir: each stream of a folder has its own, and none is shared."""
    calls = (r"\b(strerror|strtok|localtime|gmtime|asctime|ctime|"
             r"getpwnam|getpwuid|dirname|basename|setlocale|rand)\s*\(")
    for source in sources:
        if source.path.startswith("src/") and source.is_c:
            for found in re.findall(calls, bare(source.text)):
                yield f"{source.path}: calls {found}"


def promises(sources):
    """Tests are named as promises: words, no numbers of their own."""
    for source in sources:
        if not source.path.startswith("tests/"):
            continue
        names = []
        if source.path.endswith("_test.c"):
            names = re.findall(r"cmocka_unit_test\w*\(\s*(\w+)", source.text)
            good = r"[a-z]\w*__[a-z]\w*"
        elif source.name.startswith("test_") and source.path.endswith(".py"):
            names = re.findall(r"^\s*(?:async )?def (test_\w+)", source.text,
                               re.M)
            good = r"test_[a-z]\w*_[a-z]\w*_\w+"
        for name in names:
            if not re.fullmatch(good, name) or re.search(r"_\d+(_|$)", name):
                yield f"{source.path}: {name} is not a promise in words"


def todo(sources):
    """Nothing is left to do without the number of its issue."""
    pattern = r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!\s*\(?#\d+)"
    for source in sources:
        if source.is_code and re.search(pattern, source.text):
            yield f"{source.path}: something to do without an issue's number"


def places(sources):
    """No path of one machine and no host of a registry in the tree."""
    pattern = "|".join([r"(?<![\w.}])/wor" + "k/", r"/ro" + "ot/", r"\.py" + "env",
                        r"pypi\.or" + "g", "pythonhost" + "ed",
                        r"deb\.debia" + "n", r"/shar" + "ed/facts",
                        r"/hom" + r"e/\w+/"])
    for source in sources:
        found = re.search(pattern, source.text)
        if found:
            yield f"{source.path}: names {found.group(0)}"


CHECKS = (include_law, spdx, file_length, function_length, unique_names,
          name_length, header_promises, allocation, slots, any_thread, promises,
          todo, places)
