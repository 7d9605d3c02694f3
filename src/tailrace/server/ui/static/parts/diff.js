/** What changes: a sign and a word for each field, its value before and after. */
import { html } from "../html.js";
import { value } from "../format.js";

const WORDS = { added: "new", removed: "goes", modified: "changes", changed: "changes" };

/** @param {{differences: {field: string, change: string, before: any, after: any}[], show?: (field: string, value: any) => string, empty?: string}} props */
export function Differences({ differences, show = (_, found) => value(found), empty = "Nothing changes." }) {
  if (!differences.length) return html`<p class="soft">${empty}</p>`;
  const line = (kind, sign, each, found) => html`<div class=${kind}><span class="sign" aria-label=${kind === "gone" ? "before" : "after"}>${sign}</span>
    <span>${each.field}</span><span>${show(each.field, found)}</span></div>`;
  return html`<div class="diff" role="group" aria-label="Before and after">${differences.map((each) => html`
    ${each.change !== "added" && line("gone", "−", each, each.before)}
    ${each.change !== "removed" && line("come", "+", each, each.after)}`)}</div>
    <p class="small faint">${differences.map((each) => `${each.field} ${WORDS[each.change] ?? each.change}`).join(", ")}</p>`;
}

/** Differences of two flat objects. @returns {{field: string, change: string, before: any, after: any}[]} */
export function differencesOf(before, after) {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort();
  const same = (field) => JSON.stringify(before?.[field]) === JSON.stringify(after?.[field]);
  return fields.filter((field) => !same(field)).map((field) => ({
    field,
    change: !(field in (before ?? {})) ? "added" : !(field in (after ?? {})) ? "removed" : "modified",
    before: before?.[field] ?? null,
    after: after?.[field] ?? null,
  }));
}
