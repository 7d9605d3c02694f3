/** Leaving tables out of a lake: what would follow first, then the name. */
import { ask, connectorPath } from "../../api.js";
import { html, useEffect, useState } from "../../html.js";
import { CopyAs } from "../../parts/copying.js";
import { Confirm } from "../../parts/dialog.js";
import { Failure } from "../../parts/notice.js";

/** @param {{name: string, tables: string[], close: () => void, done: () => void}} props */
export function LeaveOut({ name, tables, close, done }) {
  const [plans, setPlans] = useState(/** @type {any[] | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const path = connectorPath(name, "/tables/exclude");
  const each = (query) => Promise.all(tables.map((pattern) => ask({ method: "POST", path: path + query, body: { pattern } }).then(({ data }) => data)));
  useEffect(() => void each("?dry_run=true").then(setPlans, setError), []);
  const apply = async () => {
    await each("");
    done();
  };
  if (error) return html`<${Confirm} title="Leave out" action="Leave out" isReady=${false} run=${apply} close=${close} consequences=${[]}><${Failure} error=${error} /><//>`;
  const word = tables.length === 1 ? tables[0] : name;
  return html`<${Confirm} title=${tables.length === 1 ? `Leave out ${tables[0]}` : `Leave out ${tables.length} tables`} name=${word} action="Leave out" isReady=${!!plans} run=${apply} close=${close}
    consequences=${plans ? [...new Set(plans.map((plan) => plan.message))] : ["Asking what would follow …"]}>
    ${plans && html`<p>${plans.flatMap((plan) => plan.tables).map((table) => html`<code>${table}</code> `)}</p>
      <div><${CopyAs} request=${{ method: "POST", path, body: { pattern: tables[0] } }} cli=${`tailrace tables exclude LAKE ${tables[0]}`} /></div>`}<//>`;
}
