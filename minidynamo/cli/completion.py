"""`minidynamo completion bash|zsh|fish`: a script for the shell, made from the table of commands."""

from __future__ import annotations

import argparse

from minidynamo.cli.main import OneLineParser, available

PROGRAM = "minidynamo completion"


def run(argv: list[str]) -> int:
    """The command."""
    parser = OneLineParser(prog=PROGRAM, description="Completion of commands and options; source the output.")
    parser.add_argument("shell", choices=tuple(SHELLS))
    print(SHELLS[parser.parse_args(argv).shell]())
    return 0


def run_options() -> list[str]:
    """The options of `minidynamo run`."""
    from minidynamo.cli.run import parser

    return [
        o for action in parser()._actions for o in action.option_strings if action.help != argparse.SUPPRESS
    ]


def bash() -> str:
    """For bash."""
    return f"""\
_minidynamo() {{
    local word=${{COMP_WORDS[COMP_CWORD]}}
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{" ".join(available())}" -- "$word"))
    elif [ "${{COMP_WORDS[1]}}" = run ] && [[ "$word" == -* ]]; then
        COMPREPLY=($(compgen -W "{" ".join(run_options())}" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _minidynamo minidynamo"""


def zsh() -> str:
    """For zsh."""
    rows = "\n".join(
        f"        '{name}:{row.help.replace(chr(39), '').replace(':', ' ')}'"
        for name, row in available().items()
    )
    return f"""\
#compdef minidynamo
_minidynamo() {{
    local -a commands=(
{rows}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
    elif [[ ${{words[2]}} == run && ${{words[CURRENT]}} == -* ]]; then
        compadd -- {" ".join(run_options())}
    else
        _files
    fi
}}
compdef _minidynamo minidynamo"""


def fish() -> str:
    """For fish."""
    quoted = {name: row.help.replace("'", "") for name, row in available().items()}
    rows = [
        f"complete -c minidynamo -n __fish_use_subcommand -f -a {name} -d '{text}'"
        for name, text in quoted.items()
    ]
    for option in run_options():
        kind, name = ("-l", option[2:]) if option.startswith("--") else ("-s", option[1:])
        rows.append(f"complete -c minidynamo -n '__fish_seen_subcommand_from run' {kind} {name}")
    return "\n".join(rows)


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
