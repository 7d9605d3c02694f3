/** What the server says would follow from a change of the offsets: its own answer, never a text of ours. */
import { counted } from "../../format.js";
import { html } from "../../html.js";
import { Differences } from "../../parts/diff.js";
import { Failure, Notice } from "../../parts/notice.js";
import { offsetValue } from "./form.js";

const PLACES = { log: "The lake's log ends at", lake: "The lake is published up to", edit: "The edit goes to", source: "The source has written up to", kept: "The source keeps changes from" };

/** @param {{draft: import("./draft.js").Draft}} props */
export function Assessment({ draft }) {
  if (!draft.isChanged) return html`<p class="soft">Nothing is changed yet. Choose where to go, or change a field: the server then says here what would follow.</p>`;
  const found = draft.assessment;
  return html`<div class="stack" aria-live="polite" aria-busy=${String(draft.isAsking)}>
    <h3>What would follow ${draft.isAsking && html`<span class="spin"></span>`}</h3>
    ${draft.error && html`<${Failure} error=${draft.error} />`}
    ${found && html`<${Answer} found=${found} />`}
  </div>`;
}

/** @param {{found: any}} props A dry run's answer. */
export function Answer({ found }) {
  const skips = found.direction === "forward" && found.transactions !== 0;
  return html`
    ${found.faults.map((each) => html`<${Notice} tone=${isBusy(each) ? "warn" : "bad"} text=${isBusy(each)
      ? "The connector reads its slot now, so what the source can send is asked once it has stopped." : `${each.field}: ${each.message}`} hint=${null}>
      ${isBusy(each) && html`<p class="small soft">${each.message}</p>`}<//>`)}
    ${found.consequence && html`<${Notice} tone=${found.possible ? (skips || found.tables_to_copy.length ? "warn" : "good") : "info"} text=${found.consequence} />`}
    <${Differences} differences=${found.differences} show=${offsetValue} empty="The offset stays as it is." />
    <dl class="facts">${Object.entries(PLACES).map(([key, text]) => found.positions[key] && html`<dt>${text}</dt><dd><code>${found.positions[key]}</code></dd>`)}
      ${found.direction !== "reset" && html`<dt>Transactions ${found.direction === "forward" ? "skipped" : "sent again"}</dt><dd>${found.transactions === null ? "not known before the source is asked" : counted(found.transactions, "transaction")}${found.transactions_are_all ? "" : " at least"}</dd>`}
      <dt>Copied again</dt><dd>${found.tables_to_copy.length ? found.tables_to_copy.map((each) => html`<code>${each}</code> `) : "no table"}</dd></dl>`;
}

/** Whether only the connector itself is in the way: it holds the slot while it runs. */
export const isBusy = (fault) => fault.rule === "served";

/** Whether it could be applied once the connector has stopped. */
export function couldApply(found) {
  return !!found && (found.possible || found.faults.every(isBusy)) && found.differences.length > 0;
}

/** Whether it throws away so much that its name has to be typed. */
export const isGrave = (found) => found?.direction === "reset" || (found?.direction === "forward" && found.transactions !== 0);
