"""Clients spell a message in several ways, and few templates read them all.

OpenAI clients send a call's arguments as a JSON string where most templates want the object, text as a list of
parts, null for an absent content, the role "developer", and fields that are null. Each spelling is kept where
the template understands it, which is found by rendering a small chat once, and otherwise changed into the one
that means the same.
"""
from functools import cached_property

NEEDLE = "needle7f3a"


class BadRequest(Exception):
    """The chat cannot be shown to this template."""


class Spellings:
    def __init__(self, template, source, variables):
        self._template = template
        self._variables = variables
        self.developer_role = "developer" in source

    @cached_property
    def content_parts(self):
        text = self._try_render([{"role": "user", "content": [{"type": "text", "text": NEEDLE}]}])
        return NEEDLE in text and "{'type'" not in text and '{"type"' not in text

    @cached_property
    def arguments_object(self):
        """Templates that take neither spelling get the object, as Hugging Face's documentation has it."""
        as_object = self._try_render(call_chat("", {NEEDLE: "x"}))
        if NEEDLE in as_object and f"'{NEEDLE}'" not in as_object:
            return True
        return NEEDLE not in self._try_render(call_chat("", '{"%s": "x"}' % NEEDLE))

    @cached_property
    def null_content(self):
        arguments = {"a": 1} if self.arguments_object else '{"a": 1}'
        text = self._try_render(call_chat(None, arguments))
        return NEEDLE in text and "None" not in text

    def _try_render(self, messages):
        try:
            return self._template.render(**{**self._variables, "messages": messages})
        except MemoryError:
            raise
        except Exception:
            return ""

    def adapt(self, messages):
        return [self._adapt_message(index, message) for index, message in enumerate(messages)]

    def _adapt_message(self, index, message):
        if not isinstance(message, dict):
            raise BadRequest(f"messages[{index}] is not an object")
        adapted = {key: value for key, value in message.items() if value is not None}
        adapted["content"] = message.get("content")
        if adapted.get("role") == "developer" and not self.developer_role:
            adapted["role"] = "system"
        if adapted.get("tool_calls") == []:
            del adapted["tool_calls"]
        if "tool_calls" in adapted:
            adapted["tool_calls"] = self._adapt_calls(adapted["tool_calls"])
        adapted["content"] = self._adapt_content(index, adapted)
        return adapted

    def _adapt_content(self, index, message):
        content = message["content"]
        if content is None:
            return None if "tool_calls" in message and self.null_content else ""
        if isinstance(content, list) and not self.content_parts:
            return "\n".join(part_text(index, part) for part in content)
        return content

    def _adapt_calls(self, calls):
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise BadRequest("tool_calls is not a list of objects")
        return [self._adapt_call(call) for call in calls]

    def _adapt_call(self, call):
        function = call.get("function")
        if not isinstance(function, dict) or "arguments" not in function:
            return call
        arguments = function["arguments"]
        if isinstance(arguments, str) and self.arguments_object:
            arguments = parsed_object(arguments)
        elif isinstance(arguments, dict) and not self.arguments_object:
            arguments = to_json(arguments)
        return {**call, "function": {**function, "arguments": arguments}}


def call_chat(content, arguments):
    call = {"id": "call00000", "type": "function", "function": {"name": NEEDLE[:6], "arguments": arguments}}
    if content is None:
        call["function"]["name"] = NEEDLE
    return [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "content": "b", "tool_call_id": "call00000"},
    ]


def parsed_object(text):
    """An empty string means no arguments; text that is no JSON object stays what it is."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def part_text(index, part):
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return part["text"]
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    raise BadRequest(f"messages[{index}]: this chat template takes text only, not a part of type '{kind}'")
