# SPDX-License-Identifier: Apache-2.0
"""Writes the man page and the shell completions from verbs.def.

`python cli/write_manual.py` writes isthmus.1 and completions/ beside itself;
`--check` writes nothing and fails when one of them is out of date.
"""

import ast
import pathlib
import re
import sys
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
NOTE = "Written by cli/write_manual.py from cli/verbs.def."
LICENCE = "SPDX-License-Identifier: Apache-2.0"

PLACES = [
    ("host", "memory of this process"),
    ("template[#DEVICE]",
     "the backend that is there to be copied; its devices are memory of this "
     "process. Options: addressable, alignment, devices"),
    ("pjrt:PLUGIN.so[#DEVICE[/MEMORY]]",
     "a device of a PJRT plugin, counted from 0, and one of its memories. "
     "Opening a plugin runs its code"),
    ("FILE.npy", "the one tensor of a NumPy file"),
    ("FILE.safetensors[:TENSOR]", "a named tensor of a safetensors file"),
    ("-", "a .npy file on standard input or standard output"),
]
PLACES_END = ("Of a name that can be read in more than one way, the longest "
              "path that exists wins. %23 and %3A stand for # and : in names. "
              "A name that begins with - is written as ./-NAME, or follows "
              "--.")
ENVIRONMENT = [
    ("PJRT_NAMES_AND_LIBRARY_PATHS",
     "NAME:PATH,... of plugins, as JAX reads it; doctor opens these too"),
    ("ISTHMUS_THREADS",
     "how many threads share a long copy (1 to 256); 1 when it is not set"),
    ("ISTHMUS_POOL_BYTES",
     "how many bytes of idle memory are kept for the next tensor (with K, M "
     "or G after the number or without); 512M when it is not set, 0 keeps "
     "none"),
    ("NO_COLOR", "when set and not empty, nothing is printed in colour"),
    ("TMPDIR", "where a tensor on standard input or output is kept meanwhile"),
]
EXITS = [("0", "done"),
         ("1", "refused or failed: one line on standard error says what, and "
               "ends in the code's name and number, which explain takes"),
         ("2", "the command line was wrong")]
EXAMPLES = [
    "isthmus doctor --plugin ./plugin.so",
    "isthmus move weights.safetensors:hidden.bias bias.npy",
    "isthmus move a.npy pjrt:./plugin.so#0",
    "isthmus conformance ./plugin.so --junit >report.xml",
    "isthmus route a.npy pjrt:./plugin.so --copy never",
    "isthmus run f.mlir --plugin ./plugin.so x.npy -o y.npy",
    "python train.py 2>&1 | isthmus explain -",
]


class Verb(NamedTuple):
    name: str
    operands: str
    summary: str


class Option(NamedTuple):
    verbs: list
    name: str
    letter: str
    argument: str
    help: str


def calls(text, macro):
    """The arguments of each use of a macro, as Python values."""
    for found in re.finditer(rf"^{macro}\((.*?)\)$", text, re.M | re.S):
        parts = re.findall(r'(?:"(?:\\.|[^"\\])*"\s*)+|\'.\'|[^,\s][^,]*',
                           found.group(1))
        yield [ast.literal_eval("(" + part + ")") if part[0] in "\"'"
               else part.strip() for part in parts]


def read_verbs(text):
    """(verbs, options) of verbs.def."""
    verbs = [Verb(*args[1:]) for args in calls(text, "IST_VERB")]
    upper = {args[0]: args[1] for args in calls(text, "IST_VERB")}
    options = []
    for _, sets, name, letter, argument, text_of in calls(text, "IST_OPTION"):
        names = [word.strip() for word in sets.split("|")]
        among = list(upper.values()) if names == ["ALL"] else [
            upper[word] for word in names]
        options.append(Option(among, name, "" if letter == "0" else letter,
                              argument, text_of))
    return verbs, options


def of_verb(options, verb):
    return [option for option in options if verb.name in option.verbs]


# ------------------------------------------------------------- man page --

def roff(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def roff_list(pairs):
    for term, text in pairs:
        yield from [".TP", f".B {roff(term)}", roff(text) + "."]


def roff_options(options):
    for option in options:
        name = f"\\fB\\-\\-{roff(option.name)}\\fR"
        if option.letter:
            name = f"\\fB\\-{option.letter}\\fR, " + name
        if option.argument:
            name += f" \\fI{roff(option.argument)}\\fR"
        yield from [".TP", name, roff(option.help) + "."]


def man_page(verbs, options, version):
    lines = [f'.\\" {LICENCE}', f'.\\" {NOTE}',
             f'.TH ISTHMUS 1 "" "isthmus {version}" "User Commands"',
             ".SH NAME",
             "isthmus \\- hand tensors to device runtimes, and say how they "
             "crossed", ".SH SYNOPSIS"]
    for verb in verbs:
        lines += [f".B isthmus {verb.name}",
                  f"[\\fIoptions\\fR] \\fI{roff(verb.operands)}\\fR", ".br"]
    lines += [".SH DESCRIPTION",
              "Each crossing gives a receipt: whether the memory was shared "
              "or copied, how many bytes moved, and why. Options may stand "
              "anywhere after the verb; after \\fB\\-\\-\\fR nothing is an "
              "option.", ".SH VERBS"]
    for verb in verbs:
        lines += [f".SS {verb.name} {roff(verb.operands)}".rstrip(),
                  roff(verb.summary[0].upper() + verb.summary[1:]) + "."]
        lines += roff_options(of_verb(options, verb))
    lines += [".SH PLACES", *roff_list(PLACES), ".PP", roff(PLACES_END),
              ".SH EXIT STATUS", *roff_list(EXITS),
              ".SH ENVIRONMENT", *roff_list(ENVIRONMENT),
              ".SH EXAMPLES", ".nf", *map(roff, EXAMPLES), ".fi"]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------- completions --

def words_of(option):
    """The words that an option's argument can be, or []."""
    return option.argument.split("|") if "|" in option.argument else []


def takes_path(option):
    return option.argument in ("PLUGIN.so", "OUT", "PLACE")


def flags(options):
    found = []
    for option in options:
        found += ["--" + option.name]
        found += ["-" + option.letter] if option.letter else []
    return found


def bash(verbs, options):
    lines = [f"# {LICENCE}", f"# {NOTE}", "_isthmus() {",
             "  local word=${COMP_WORDS[COMP_CWORD]} verb= i",
             "  local before=${COMP_WORDS[COMP_CWORD-1]}",
             "  for ((i = 1; i < COMP_CWORD; i++)); do",
             "    case ${COMP_WORDS[i]} in -*) ;; *)",
             "      verb=${COMP_WORDS[i]}; break ;; esac", "  done",
             "  case $verb in", "    '')",
             "      COMPREPLY=($(compgen -W '"
             + " ".join(verb.name for verb in verbs)
             + " --help --version --json' -- \"$word\"))",
             "      return ;;", "  esac", "  case $before in"]
    for option in options:
        name = "|".join(flags([option]))
        if words_of(option):
            lines += [f"    {name})",
                      f"      COMPREPLY=($(compgen -W '"
                      f"{' '.join(words_of(option))}' -- \"$word\"))",
                      "      return ;;"]
        elif takes_path(option):
            lines += [f"    {name})",
                      "      COMPREPLY=($(compgen -f -- \"$word\"))",
                      "      return ;;"]
    lines += ["  esac", "  case $verb:$word in"]
    for verb in verbs:
        lines += [f"    {verb.name}:-*)",
                  f"      COMPREPLY=($(compgen -W '"
                  f"{' '.join(flags(of_verb(options, verb)))}' -- \"$word\"))",
                  "      return ;;"]
    lines += ["  esac", "  COMPREPLY=($(compgen -f -- \"$word\"))", "}",
              "complete -o filenames -F _isthmus isthmus"]
    return "\n".join(lines) + "\n"


def zsh_text(text):
    return re.sub(r"([\[\]:'\\])", lambda m: {"'": "'\\''"}.get(
        m.group(1), "\\" + m.group(1)), text)


def zsh_option(option):
    action = ""
    if words_of(option):
        action = f":value:({' '.join(words_of(option))})"
    elif option.argument:
        action = f":{zsh_text(option.argument)}:"
        action += "_files" if takes_path(option) else " "
    text = f"[{zsh_text(option.help)}]"
    if not option.letter:
        return f"'*--{option.name}{text}{action}'"
    return (f"'*'{{-{option.letter},--{option.name}}}'{text}{action}'")


def zsh(verbs, options):
    lines = ["#compdef isthmus", f"# {LICENCE}", f"# {NOTE}", "_isthmus() {",
             "  local -a verbs", "  verbs=("]
    lines += [f"    '{verb.name}:{zsh_text(verb.summary)}'" for verb in verbs]
    lines += ["  )", "  if ((CURRENT == 2)); then",
              "    _describe verb verbs", "    return", "  fi",
              "  local verb=$words[2]", "  shift words", "  ((CURRENT--))",
              "  case $verb in"]
    for verb in verbs:
        lines += [f"    {verb.name})", "      _arguments -s \\"]
        lines += [f"        {zsh_option(option)} \\"
                  for option in of_verb(options, verb)]
        lines += ["        '*:place:_files' ;;"]
    lines += ["  esac", "}", '_isthmus "$@"']
    return "\n".join(lines) + "\n"


def fish_text(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def fish(verbs, options):
    lines = [f"# {LICENCE}", f"# {NOTE}",
             "function __isthmus_verb",
             "  set -l words (commandline -opc)",
             "  test (count $words) -gt 1; and contains -- $words[2] $argv",
             "end"]
    for verb in verbs:
        lines.append("complete -c isthmus -n __fish_use_subcommand -f "
                     f"-a {verb.name} -d '{fish_text(verb.summary)}'")
    for option in options:
        line = (f"complete -c isthmus -n '__isthmus_verb "
                f"{' '.join(option.verbs)}' -l {option.name}")
        line += f" -s {option.letter}" if option.letter else ""
        if words_of(option):
            line += f" -x -a '{' '.join(words_of(option))}'"
        elif option.argument:
            line += " -r" if takes_path(option) else " -x"
        lines.append(line + f" -d '{fish_text(option.help)}'")
    return "\n".join(lines) + "\n"


def documents(root):
    """What each file below root should hold."""
    verbs, options = read_verbs((root / "verbs.def").read_text())
    header = (root.parent / "include/isthmus/version.h").read_text()
    version = ".".join(re.search(rf"IST_VERSION_{part} (\d+)", header).group(1)
                       for part in ("MAJOR", "MINOR", "PATCH"))
    return {"isthmus.1": man_page(verbs, options, version),
            "completions/isthmus.bash": bash(verbs, options),
            "completions/_isthmus": zsh(verbs, options),
            "completions/isthmus.fish": fish(verbs, options)}


def main(arguments):
    stale = []
    for name, text in documents(HERE).items():
        path = HERE / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    if "--check" in arguments and stale:
        print("out of date: " + ", ".join(stale)
              + ": run python cli/write_manual.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
