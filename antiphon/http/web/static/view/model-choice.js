// Which model answers.

import { fill, h } from "./dom.js";

export class ModelChoice {
  /** @param {import("../chat/session.js").Session} session */
  constructor(session) {
    this.session = session;
    this.field = h("select", {
      class: "select",
      "aria-label": "Model",
      onchange: () => this.#chosen(),
    });
    this.element = h("span", { class: "model-choice" }, this.field);
    session.changed.on(() => this.#draw());
    this.#draw();
  }

  #chosen() {
    this.session.model = this.field.value;
  }

  #draw() {
    const { models, model } = this.session;
    fill(
      this.field,
      ...models.map(({ id }) => h("option", { value: id, selected: id === model }, id)),
    );
    this.element.hidden = models.length === 0;
  }
}
