/** What needs a person, with what helps beside it; and places where nothing is. */
import { html } from "../html.js";
import { CopyButton } from "./copying.js";
import { Shape } from "./state.js";

const SHAPE = { bad: "triangle", warn: "triangle", info: "ring", good: "check" };

/** @param {{tone?: string, text: any, hint?: string | null, children?: any, action?: any}} props */
export function Notice({ tone = "info", text, hint = null, children, action }) {
  return html`<div class="notice ${tone}" role=${tone === "bad" ? "alert" : "note"}>
    <${Shape} name=${SHAPE[tone] ?? "ring"} tone=${tone} />
    <div class="stack">
      <div><p class="what">${text}</p>${hint && html`<${Hint} text=${hint} />`}</div>
      ${children}
    </div>
    <div class="row">${action}</div>
  </div>`;
}

/** @param {{text: string}} props Something that can be pasted, or advice. */
export function Hint({ text }) {
  return html`<div class="hint"><code>${text}</code><${CopyButton} text=${text} /></div>`;
}

/** An error of the API, in place. @param {{error: any, again?: () => void, what?: string}} props */
export function Failure({ error, again, what }) {
  return html`<${Notice} tone="bad" text=${(what ? `${what}: ` : "") + (error?.message ?? String(error))}
    hint=${error?.hint} action=${again && html`<button type="button" class="button small" onClick=${again}>Try again</button>`} />`;
}

/** @param {{title: string, children?: any}} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="strong">${title}</p>${children}</div>`;
}

/**
 * What a resource shows: nothing yet, an error, or its data; data stays shown when a later answer is an error.
 * @param {{of: import("../store.js").Resource, what: string, children: (data: any) => any}} props
 */
export function Shown({ of, what, children }) {
  if (of.data === null) {
    if (of.error) return html`<${Failure} error=${of.error} again=${of.reload} what=${what} />`;
    return html`<p class="loading" aria-busy="true">${what} …</p>`;
  }
  return html`${of.error && html`<${Failure} error=${of.error} again=${of.reload} what=${`${what} cannot be asked now`} />`}
    ${children(of.data)}`;
}
