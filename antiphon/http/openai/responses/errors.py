"""Errors that the rest of the server words for chats, in the words of the Responses API."""

from antiphon.errors import AntiphonError, ContextLengthExceeded, GenerationFailed, InvalidRequest


def told_about(error: AntiphonError) -> AntiphonError:
    """The same error, with the parameter that it is about here."""
    match error:
        case ContextLengthExceeded():
            return InvalidRequest(str(error), "input", "context_length_exceeded")
        case GenerationFailed(code="invalid_schema", detail=detail):
            message = f"Invalid schema for text.format: {detail}"
            return InvalidRequest(message, "text.format", "invalid_schema")
        case InvalidRequest(message=message, param="max_tokens", code=code):
            name = "max_output_tokens"
            return InvalidRequest(message.replace("max_tokens", name), name, code)
        case InvalidRequest(message=message, param="messages", code=code):
            return InvalidRequest(message, "input", code)
        case _:
            return error
