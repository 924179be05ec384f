#!/usr/bin/env python3
"""Writes expected.json: what the plain reference library makes of each template here with each chat.

Needs Debian's python3-jinja2 and nothing of this project, so that the tests compare with something independent:

    /usr/bin/python3 tests/data/chat/make_expected.py

The environment is that of Hugging Face's apply_chat_template. A template that fails gives {"error": its text}; pairs
in NOT_COMPARED are left out because the renderer translates those spellings on purpose (chat_spellings_test.cpp).
"""
import json
import pathlib
from datetime import datetime

import jinja2
import jinja2.ext
import jinja2.sandbox

FOLDER = pathlib.Path(__file__).parent
SPECIAL_TEXTS = {"bos_token": "<s>", "eos_token": "</s>"}

# Template -> chats whose spelling it does not read.
NOT_COMPARED = {
    "tools_and_thoughts": {"string_arguments"},
    "observation_marks": {"string_arguments"},
    "typed_channels": {"string_arguments"},
    "string_arguments": {"tool_call", "two_calls", "parts"},
    "alternating_turns": {"string_arguments", "parts"},
    "every_construct": {"string_arguments", "parts"},
}


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("show"), [], [], body).set_lineno(line)

    def show(self, caller):
        return caller()


def refuse(message):
    raise jinja2.TemplateError(message)


def reference_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = lambda value, ensure_ascii=False, indent=None, separators=None, sort_keys=False: (
        json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def render(template, chat):
    variables = {"tools": None, "documents": None, **SPECIAL_TEXTS, **chat}
    try:
        return {"text": template.render(**variables)}
    except Exception as error:
        return {"error": str(error)}


def main():
    environment = reference_environment()
    chats = json.loads((FOLDER / "chats.json").read_text())
    expected = {}
    for path in sorted(FOLDER.glob("*.jinja")):
        template = environment.from_string(path.read_text())
        compared = set(chats) - NOT_COMPARED[path.stem]
        expected[path.stem] = {name: render(template, chats[name]) for name in sorted(compared)}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


main()
