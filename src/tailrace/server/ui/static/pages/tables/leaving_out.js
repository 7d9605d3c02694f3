/** Leaving tables out of a lake: what would follow first, as the server says it, then the name. */
import { ask, connectorPath } from "../../api.js";
import { html, useEffect, useState } from "../../html.js";
import { CopyAs, quoted } from "../../parts/copying.js";
import { Confirm } from "../../parts/dialog.js";
import { Failure } from "../../parts/notice.js";

const NAMES_MAX = 30;

/** @param {{name: string, tables: string[], close: () => void, done: () => void}} props */
export function LeaveOut({ name, tables, close, done }) {
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const request = { method: "POST", path: connectorPath(name, "/tables/exclude"), body: { tables } };
  useEffect(() => void ask({ ...request, path: `${request.path}?dry_run=true` }).then(({ data }) => setPlan(data), setError), []);
  const apply = async () => {
    await ask(request);
    done();
  };
  const [word, what] = tables.length === 1 ? [tables[0], tables[0]] : [name, `${tables.length} tables of ${name}`];
  return html`<${Confirm} title=${`Leave out ${what}`} name=${word} action="Leave out" isReady=${!!plan} run=${apply} close=${close}
    consequences=${plan ? [plan.consequence, "To take them in again later is to copy them again."] : error ? [] : ["Asking what would follow …"]}>
    ${error && html`<${Failure} error=${error} />`}
    ${plan && html`<p class="break">${plan.tables.slice(0, NAMES_MAX).map((each) => html`<code>${each.table}</code> `)}${plan.tables.length > NAMES_MAX && `and ${plan.tables.length - NAMES_MAX} more`}</p>
      <div><${CopyAs} request=${request} cli=${plan.patterns.map((each) => `tailrace tables exclude LAKE ${quoted(each)}`).join("\n")} /></div>`}<//>`;
}
