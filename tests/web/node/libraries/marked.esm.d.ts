// What of marked the page uses. Blocks are of many kinds, each with fields of its own.

export interface Token {
  type: string;
  raw: string;
  [field: string]: any;
}

interface Renderer {
  parser: { parseInline(tokens: Token[]): string };
}

export class Marked {
  constructor(options: {
    gfm: boolean;
    tokenizer: Record<string, () => undefined>;
    renderer: Record<string, (this: Renderer, token: Token) => string>;
  });
  lexer(text: string): Token[];
  parser(tokens: Token[]): string;
}
