# SPDX-License-Identifier: Apache-2.0
# Written by cli/write_manual.py from cli/verbs.def.
function __isthmus_verb
  set -l words (commandline -opc)
  test (count $words) -gt 1; and contains -- $words[2] $argv
end
complete -c isthmus -n __fish_use_subcommand -f -a doctor -d 'say what is on this machine and what each memory can do, by trying'
complete -c isthmus -n __fish_use_subcommand -f -a probe -d 'open one PJRT plugin and say what it can do, by trying'
complete -c isthmus -n __fish_use_subcommand -f -a conformance -d 'check every slot of a plugin that a tensor bridge needs, for its author'
complete -c isthmus -n __fish_use_subcommand -f -a move -d 'move a tensor to a file or a device and print the receipt'
complete -c isthmus -n __fish_use_subcommand -f -a run -d 'run a StableHLO program on a plugin\'s device'
complete -c isthmus -n __fish_use_subcommand -f -a route -d 'say how a tensor would cross from A to B, and why, without doing it'
complete -c isthmus -n __fish_use_subcommand -f -a explain -d 'explain an error of isthmus; - finds the errors in a log'
complete -c isthmus -n '__isthmus_verb doctor probe conformance move run route explain' -l help -s h -d 'print this help'
complete -c isthmus -n '__isthmus_verb doctor probe conformance move run route explain' -l version -s V -d 'print the version'
complete -c isthmus -n '__isthmus_verb doctor probe conformance move run route explain' -l json -s j -d 'print JSON instead of text'
complete -c isthmus -n '__isthmus_verb conformance' -l junit -d 'print JUnit XML instead of text'
complete -c isthmus -n '__isthmus_verb doctor run' -l plugin -s p -r -d 'a PJRT plugin to open (run: a place, P.so#DEVICE, or the name of an installed one, too; without it the one that is installed); opening runs its code'
complete -c isthmus -n '__isthmus_verb run' -l output -s o -r -d 'where a result goes; what follows up to the next option are outputs too'
complete -c isthmus -n '__isthmus_verb move' -l via -r -d 'a device to pass through on the way; may be given several times'
complete -c isthmus -n '__isthmus_verb doctor probe conformance move run route' -l option -s O -x -d 'an option of the backend opened; TYPE is string, int, ints, float or bool, and is guessed from VALUE when left out'
complete -c isthmus -n '__isthmus_verb doctor probe move run route' -l trusted -d 'open plugins in this process at once, and not in one of their own first; one that crashes ends the command'
complete -c isthmus -n '__isthmus_verb move run route' -l copy -s c -x -a 'auto never always' -d 'alias if it can and copy if it must; alias or refuse; always copy'
complete -c isthmus -n '__isthmus_verb move run route' -l read-only -x -a 'auto refuse copy allow' -d 'what to do when a target could write memory that is read-only'
complete -c isthmus -n '__isthmus_verb move run route' -l mutable-source -x -a 'alias copy' -d 'what to do when the source may be written later'
complete -c isthmus -n '__isthmus_verb move run route' -l dtype -s d -x -d 'what .npy items of type V1 or V2 are (bfloat16, float8_e5m2, ...); for route the element type'
complete -c isthmus -n '__isthmus_verb move' -l astype -x -d 'convert the values to another floating-point dtype first: bfloat16, float8_e4m3fn, ...'
complete -c isthmus -n '__isthmus_verb move' -l saturate -d 'with --astype: what is too large, and infinity, becomes the largest number of DTYPE'
complete -c isthmus -n '__isthmus_verb route' -l shape -x -d 'the shape, where A is no file (default 64; "" is a scalar)'
complete -c isthmus -n '__isthmus_verb route' -l strides -x -d 'the strides in elements, where A is no file (default row-major)'
complete -c isthmus -n '__isthmus_verb route' -l address -x -d 'the address of element 0, where A is no file (default 4096)'
complete -c isthmus -n '__isthmus_verb route' -l grant -x -a 'writable immutable read-only' -d 'who may write the source, where A is no file'
