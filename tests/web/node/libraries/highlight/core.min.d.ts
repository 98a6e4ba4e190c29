// What of highlight.js the page uses.

declare const hljs: {
  highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
  registerLanguage(name: string, grammar: unknown): void;
};
export default hljs;
