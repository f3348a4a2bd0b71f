/** Finding and making elements. */

/** The element of the page with this id. Throws if `index.html` has none, or one of another kind. */
export function byId<E extends HTMLElement>(id: string, kind: new () => E): E {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`index.html has no ${kind.name} #${id}`);
  }
  return found;
}

/** The first descendant that the selector finds. Throws if there is none. */
export function within(parent: ParentNode, selector: string): HTMLElement {
  const found = parent.querySelector<HTMLElement>(selector);
  if (found === null) {
    throw new Error(`nothing is ${selector}`);
  }
  return found;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Writes a text only if it is another: what screen readers and layout have seen stays. */
export function write(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** A group of radio buttons that look like one; calls `chosen` with the index. */
export function radios(parent: HTMLElement, name: string, labels: string[], checked: number, chosen: (index: number) => void): void {
  const legend = within(parent, "legend");
  const buttons = labels.map((label, index) => {
    const input = make("input", { type: "radio", name, checked: index === checked });
    input.addEventListener("change", () => chosen(index));
    return make("label", {}, input, make("span", {}, label));
  });
  parent.replaceChildren(legend, ...buttons);
}
