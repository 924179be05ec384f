# Completion of coterie for bash: commands, each command's own flags (asked from its help), and files.
_coterie() {
  local current="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]:-}"
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "run serve bench logits perplexity plan probe tokenize inspect replay synth --help --version" -- "$current")
  elif [[ $current == -* ]]; then
    local flags
    flags="$(coterie "$command" --help 2>/dev/null | grep -oE '(^|[ ,])--?[a-z][a-z0-9-]*' | tr -d ' ,' | sort -u)"
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _coterie coterie
