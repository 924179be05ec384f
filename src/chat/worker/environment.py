"""The Jinja environment that Hugging Face's chat templates are written for, in the reference library's sandbox."""
import sys

# The interpreter runs without its site module, which costs a third of the start; this is where Debian keeps
# packages. Elsewhere the site module knows.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    try:
        import jinja2
    except ModuleNotFoundError:
        import site

        site.main()
        import jinja2
except ImportError as error:
    send_error("dependency", error)
    sys.exit(0)

from datetime import datetime

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment


class RaisedByTemplate(TemplateError):
    """The template refused the chat; the message is its own."""


class GenerationTag(Extension):
    """{% generation %} marks the assistant's text for training; here the body is rendered as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    """Plain JSON: unlike Jinja's own filter it neither escapes HTML nor sorts keys."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def raise_exception(message):
    raise RaisedByTemplate(message)


def strftime_now(form):
    return datetime.now().strftime(form)


def make_environment():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = to_json
    environment.filters["fromjson"] = json.loads
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment
