# SPDX-License-Identifier: Apache-2.0
# Written by cli/write_manual.py from cli/verbs.def.
_isthmus() {
  local word=${COMP_WORDS[COMP_CWORD]} verb= i
  local before=${COMP_WORDS[COMP_CWORD-1]}
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in -*) ;; *)
      verb=${COMP_WORDS[i]}; break ;; esac
  done
  case $verb in
    '')
      COMPREPLY=($(compgen -W 'doctor probe conformance move compile run route explain --help --version --json' -- "$word"))
      return ;;
  esac
  case $before in
    --plugin|-p)
      COMPREPLY=($(compgen -f -- "$word"))
      return ;;
    --output|-o)
      COMPREPLY=($(compgen -f -- "$word"))
      return ;;
    --via)
      COMPREPLY=($(compgen -f -- "$word"))
      return ;;
    --copy|-c)
      COMPREPLY=($(compgen -W 'auto never always' -- "$word"))
      return ;;
    --read-only)
      COMPREPLY=($(compgen -W 'auto refuse copy allow' -- "$word"))
      return ;;
    --mutable-source)
      COMPREPLY=($(compgen -W 'alias copy' -- "$word"))
      return ;;
    --grant)
      COMPREPLY=($(compgen -W 'writable immutable read-only' -- "$word"))
      return ;;
  esac
  case $verb:$word in
    doctor:-*)
      COMPREPLY=($(compgen -W '--help -h --version -V --json -j --plugin -p --option -O --trusted' -- "$word"))
      return ;;
    probe:-*)
      COMPREPLY=($(compgen -W '--help -h --version -V --json -j --option -O --trusted' -- "$word"))
      return ;;
    conformance:-*)
      COMPREPLY=($(compgen -W '--help -h --version -V --json -j --junit --option -O' -- "$word"))
      return ;;
    move:-*)
      COMPREPLY=($(compgen -W '--help -h --version -V --json -j --via --option -O --trusted --copy -c --read-only --mutable-source --dtype -d --astype --saturate' -- "$word"))
      return ;;
    compile:-*)
      COMPREPLY=($(compgen -W '--help -h --version -V --json -j --plugin -p --output -o --option -O --trusted --portable --no-cache' -- "$word"))
      return ;;
    run:-*)
      COMPREPLY=($(compgen -W '--help -h --version -V --json -j --plugin -p --output -o --option -O --trusted --no-cache --copy -c --read-only --mutable-source --dtype -d' -- "$word"))
      return ;;
    route:-*)
      COMPREPLY=($(compgen -W '--help -h --version -V --json -j --option -O --trusted --copy -c --read-only --mutable-source --dtype -d --shape --strides --address --grant' -- "$word"))
      return ;;
    explain:-*)
      COMPREPLY=($(compgen -W '--help -h --version -V --json -j' -- "$word"))
      return ;;
  esac
  COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _isthmus isthmus
