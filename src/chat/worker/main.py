"""Answers requests one by one until the other end closes its side.

Arguments: seconds of processor time a small request may take, bytes an answer may have. The system ends the process
(SIGPROF) when a request takes more time; the parent starts another.
"""
import gc
import signal
from collections import OrderedDict

COMPILED_TEMPLATES_KEPT = 16
# Large chats get more time: ordinary templates render ten times as many bytes a second.
BYTES_PER_EXTRA_SECOND = 4e6


class AnswerTooLong(Exception):
    pass


class UnknownTemplate(Exception):
    """Never compiled here, or forgotten since: the parent compiles it again."""


class Worker:
    def __init__(self, longest_answer):
        self._longest_answer = longest_answer
        self._environment = make_environment()
        self._compiled = OrderedDict()

    def answer(self, request):
        if request["do"] == "compile":
            return self._compile(request["id"], request["source"], request["variables"])
        return self._render(request["id"], request["variables"])

    def _compile(self, key, source, variables):
        template = self._environment.from_string(source)
        self._compiled[key] = (template, Spellings(template, source, variables), variables)
        if len(self._compiled) > COMPILED_TEMPLATES_KEPT:
            self._compiled.popitem(last=False)
        return b""

    def _render(self, key, variables):
        if key not in self._compiled:
            raise UnknownTemplate
        self._compiled.move_to_end(key)
        template, spellings, fixed = self._compiled[key]
        variables["messages"] = spellings.adapt(variables["messages"])
        pieces, length = [], 0
        for piece in template.generate({**fixed, **variables}):
            pieces.append(piece)
            length += len(piece)
            if length > self._longest_answer:
                raise AnswerTooLong
        text = "".join(pieces).encode()
        if len(text) > self._longest_answer:
            raise AnswerTooLong
        return text


def template_line(error):
    """The template's line that was being rendered: the library maps its frames back to the template."""
    line, trace = None, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def send_failure(error, longest_answer):
    if isinstance(error, jinja2.TemplateSyntaxError):
        send_error("syntax", error.message, error.lineno)
    elif isinstance(error, RaisedByTemplate):
        send_error("raised", error.message)
    elif isinstance(error, BadRequest):
        send_error("request", error)
    elif isinstance(error, UnknownTemplate):
        send_error("unknown", "")
    elif isinstance(error, AnswerTooLong):
        send_error("size", f"its text is longer than {longest_answer} bytes")
    elif isinstance(error, RecursionError):
        send_error("template", "it is nested too deeply", template_line(error))
    elif isinstance(error, UnicodeEncodeError):
        send_error("template", "its text is not valid Unicode")
    elif isinstance(error, jinja2.TemplateError):
        send_error("template", error.message, template_line(error))
    else:
        send_error("template", f"{type(error).__name__}: {error}", template_line(error))


def serve(cpu_seconds, longest_answer):
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    worker = Worker(longest_answer)
    gc.freeze()
    send_answer(b"")
    while (frame := receive_frame()) is not None:
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds + len(frame) / BYTES_PER_EXTRA_SECOND)
        try:
            send_answer(worker.answer(json.loads(frame)))
        except MemoryError:
            # What the heap keeps after this is unknown: end, and let the parent start a fresh process.
            send_error("memory", "it needs too much memory")
            return
        except Exception as error:
            send_failure(error, longest_answer)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


serve(float(sys.argv[1]), int(sys.argv[2]))
