"""The model's own chat template and vocabulary, as `ports.ChatTokenizer`."""

from antiphon.engine.chat.tokenizer import ModelTokenizer, load_chat_tokenizer, load_hub_tokenizer

__all__ = ["ModelTokenizer", "load_chat_tokenizer", "load_hub_tokenizer"]
