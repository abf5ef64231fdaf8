"""`pytrace --complete bash|zsh|fish`: scripts by which shells complete the words after `pytrace`.

Each is made from the table of commands. After the program to record, they complete files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .options import CliCommand, Option

Commands = tuple[CliCommand, ...]


def _words(commands: Commands) -> list[CliCommand]:
    return [command for command in commands if command.name]


def _recording(commands: Commands) -> CliCommand:
    return next(command for command in commands if not command.name)


def _with_values(options: Iterable[Option]) -> list[str]:
    return [flag for option in options if option.metavar and option.alone is None for flag in option.flags]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# ---- bash ----------------------------------------------------------------------------------------

_BASH = """\
# Completion of pytrace for bash. In ~/.bashrc: eval "$(pytrace --complete bash)"
_pytrace() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= index
    COMPREPLY=()
    # bash takes --format=json for three words
    if [ "$word" = = ]; then
        word=
    elif [ "$before" = = ]; then
        before=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    if [ "$COMP_CWORD" -gt 1 ]; then
        case ${{COMP_WORDS[1]}} in {words}) command=${{COMP_WORDS[1]}} ;; esac
    fi
    if [ -z "$command" ]; then
        for ((index = 1; index < COMP_CWORD; index += 1)); do
            case ${{COMP_WORDS[index]}} in
            {with_values})
                ((index += 1))
                [ "${{COMP_WORDS[index]}}" = = ] && ((index += 1))
                while [ "${{COMP_WORDS[index+1]}}" = : ]; do ((index += 2)); done
                ;;
            -m* | -c* | -- | [!-]*) # the program
                compopt -o default
                return
                ;;
            esac
        done
    fi
    case "$command $before" in
{values}
    esac
    case "$command $word" in
{options}
    esac
    if [ "$COMP_CWORD" = 1 ]; then
        {first}
    fi
    # with words of ours among them, files have to be named here; else readline does it better
    if [ ${{#COMPREPLY[@]}} -gt 0 ]; then
        mapfile -t -O ${{#COMPREPLY[@]}} COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames
    else
        compopt -o default
    fi
}}
complete -F _pytrace pytrace
"""


def bash(commands: Commands) -> str:
    values, options = [], []
    for command in commands:
        for option in command.options:
            if option.metavar:
                places = "|".join(f'"{command.name} {flag}"' for flag in option.flags)
                files = "compopt -o default" if option.files else ":"
                do = _bash_words(option.choices) if option.choices else files
                if option.alone is not None:  # the program may follow, too
                    do += "; compopt -o default"
                values.append(f"    {places}) {do}; return ;;")
        flags = [flag for option in command.options for flag in option.flags]
        options.append(f'    "{command.name} -"*) {_bash_words(flags)}; return ;;')
    names = [command.name for command in _words(commands)]
    return _BASH.format(
        words=" | ".join(names),
        with_values=" | ".join(_with_values(_recording(commands).options)),
        values="\n".join(values),
        options="\n".join(options),
        first=_bash_words(names),
    )


def _bash_words(words: Iterable[str]) -> str:
    return f'mapfile -t COMPREPLY < <(compgen -W {_quoted(" ".join(words))} -- "$word")'


# ---- zsh -----------------------------------------------------------------------------------------

_ZSH = """\
#compdef pytrace
# Completion of pytrace for zsh. In ~/.zshrc, behind compinit: eval "$(pytrace --complete zsh)"
_pytrace_first() {{
    local -a commands=(
{words}
    )
    _alternative 'commands:command:{{_describe command commands}}' 'files:script:_files'
}}
_pytrace() {{
    if (( CURRENT > 2 )); then
        case $words[2] in
{cases}
        esac
    fi
    _arguments -S -A '-*' \\
{recording}
        '1:script:_pytrace_first' '*:file:_files'
}}
if [ "$funcstack[1]" = _pytrace ]; then _pytrace "$@"; else compdef _pytrace pytrace; fi
"""


def zsh(commands: Commands) -> str:
    cases = []
    for command in _words(commands):
        arguments = [
            _quoted(f"{number}:{argument.metavar}:{'_files' if argument.files else ' '}")
            for number, argument in enumerate(command.arguments, 1)
        ]
        specs = [*(spec for option in command.options for spec in _zsh(option)), *arguments]
        lines = " \\\n".join(f"                {spec}" for spec in specs)
        cases.append(
            f"        {command.name})\n            shift words; (( CURRENT-- ))\n"
            f"            _arguments -S \\\n{lines}\n            return ;;"
        )
    recording = [spec for option in _recording(commands).options for spec in _zsh(option)]
    return _ZSH.format(
        words="\n".join(
            f"        {_quoted(f'{command.name}:{_escaped(command.about)}')}" for command in _words(commands)
        ),
        cases="\n".join(cases),
        recording="\n".join(f"        {spec} \\" for spec in recording),
    )


def _escaped(text: str) -> str:
    text = " ".join(text.split()).split(". ")[0].rstrip(".")
    for letter in "\\:[]":
        text = text.replace(letter, "\\" + letter)
    return text


def _zsh(option: Option) -> Iterable[str]:
    """A specification of _arguments for each flag."""
    others = " ".join([*option.flags, *option.without])
    value = ""
    if option.metavar:
        action = f"({' '.join(option.choices)})" if option.choices else "_files" if option.files else " "
        value = f"{':' * (option.alone is not None)}:{_escaped(option.metavar)}:{action}"
    for flag in option.flags:
        sign = "" if not option.metavar else "=" if flag.startswith("--") else "+"
        yield _quoted(f"({others}){flag}{sign}[{_escaped(option.help)}]{value}")


# ---- fish ----------------------------------------------------------------------------------------

_FISH = """\
# Completion of pytrace for fish. In ~/.config/fish/config.fish: pytrace --complete fish | source
function __pytrace_is --description 'Whether options of this command can follow'
    set -l words (commandline -opc)
    set -e words[1]
    if set -q words[1]; and contains -- $words[1] {words}
        test $words[1] = $argv[1]
        return
    end
    test $argv[1] = record; or return 1
    set -l value 0
    for word in $words
        if test $value = 1
            set value 0
            continue
        end
        switch $word
            case {with_values}
                set value 1
            case '-m*' '-c*' '--' # the program
                return 1
            case '-*'
            case '*'
                return 1
        end
    end
end
complete -c pytrace -e
{lines}
"""


def fish(commands: Commands) -> str:
    lines = []
    for command in commands:
        if command.name:
            first = "'test (count (commandline -opc)) = 1'"
            lines.append(f"complete -c pytrace -n {first} -a {command.name} -d {_fish(command.about)}")
        for option in command.options:
            parts = [f"complete -c pytrace -n '__pytrace_is {command.name or 'record'}'"]
            parts += [f"-s {option.short[1:]}"] * bool(option.short)
            parts.append(f"-l {option.key}")
            if option.metavar:
                # fish offers words behind a flag only if one has to follow
                parts.append("-r -F" if option.files or option.alone is not None else "-x")
            if option.choices:
                parts.append(f"-a '{' '.join(option.choices)}'")
            lines.append(" ".join([*parts, f"-d {_fish(option.help)}"]))
    return _FISH.format(
        words=" ".join(command.name for command in _words(commands)),
        with_values=" ".join(_with_values(_recording(commands).options)),
        lines="\n".join(lines),
    )


def _fish(text: str) -> str:
    text = " ".join(text.split()).split(". ")[0].rstrip(".")
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS: dict[str, Callable[[Commands], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
