/** The offset as a form that is made of its JSON schema, beside the same offset as JSON. */
import { lsn, time } from "../../format.js";
import { html, useId, useState } from "../../html.js";

/** @param {{draft: import("./draft.js").Draft, schema: any}} props */
export function OffsetForm({ draft, schema }) {
  const [shown] = draft.body.offsets ?? [];
  const known = schema ? propertiesOf(schema) : {};
  const offset = shown?.offset ?? {};
  const others = Object.keys(known).filter((field) => !(field in offset));
  const id = useId();
  return html`<div class="cols">
    <div class="stack">
      <div class="row apart"><h3>Fields</h3>${draft.isChanged && html`<button type="button" class="button small" onClick=${draft.forget}>Undo my changes</button>`}</div>
      ${draft.textFault
        ? html`<p class="soft">The form comes back once the JSON can be read.</p>`
        : Object.entries(offset).map(([field, found]) => html`<${Field} key=${field} field=${field} value=${found} about=${known[field]} faults=${draft.faults[field]}
            before=${draft.entries[0]?.offset?.[field]} set=${(value) => draft.set(field, value)} remove=${() => draft.remove(field)} />`)}
      ${!!others.length && html`<div class="field"><label for=${id}>Add a field</label>
        <select id=${id} value="" onChange=${(event) => event.target.value && draft.set(event.target.value, first(known[event.target.value]))}>
          <option value="">…</option>${others.map((each) => html`<option value=${each}>${each}: ${known[each].description}</option>`)}</select></div>`}
    </div>
    <div class="stack">
      <h3><label for=${`${id}-json`}>JSON, as <code>GET …/offsets</code> answers it</label></h3>
      <textarea id=${`${id}-json`} rows=${Math.min(24, draft.text.split("\n").length + 1)} spellcheck=${false} value=${draft.text}
        aria-invalid=${draft.textFault ? "true" : undefined} aria-describedby=${`${id}-fault`} onInput=${(event) => draft.setText(event.target.value)}></textarea>
      <p class="small bad" id=${`${id}-fault`} role="status">${draft.textFault}</p>
    </div>
  </div>`;
}

/** The offset's properties of a layout's schema. */
export function propertiesOf(schema) {
  const offset = schema.properties?.offset;
  return (offset?.anyOf ?? [offset]).find((each) => each?.properties)?.properties ?? {};
}

function first(about) {
  if (about?.enum) return about.enum[0];
  const type = [about?.type].flat()[0];
  return { integer: 0, boolean: false }[type] ?? "";
}

/** @param {{field: string, value: any, about: any, faults?: string[], before: any, set: (value: any) => void, remove: () => void}} props */
export function Field({ field, value, about, faults = [], before, set, remove }) {
  const id = useId();
  const isOther = JSON.stringify(before) !== JSON.stringify(value);
  return html`<div class="field">
    <div class="row small"><label for=${id} class="strong soft"><code>${field}</code></label>${isOther && html`<span class="warn">changed${before === undefined ? " (new)" : ` from ${before}`}</span>`}</div>
    <div class="row nowrap-row"><${Input} id=${id} value=${value} about=${about} set=${set} isWrong=${faults.length > 0} />
      <button type="button" class="button plain small" aria-label=${`Remove ${field}`} title="Remove this field" onClick=${remove}>✕</button></div>
    <span class="help" id=${`${id}-help`}>${about?.description ?? "not in the layout"}${meaning(value, about)}</span>
    ${faults.map((each) => html`<span class="fault">${each}</span>`)}
  </div>`;
}

function Input({ id, value, about, set, isWrong }) {
  const rule = about?.["x-rule"];
  const common = { id, "aria-describedby": `${id}-help`, "aria-invalid": isWrong ? "true" : undefined };
  if (about?.enum) {
    return html`<select ...${common} value=${value} onChange=${(event) => set(event.target.value)}>${about.enum.map((each) => html`<option>${each}</option>`)}</select>`;
  }
  if (about?.type === "boolean") {
    return html`<input ...${common} type="checkbox" checked=${value === true} onChange=${(event) => set(event.target.checked)} /><span class="grow">${value ? "true" : "false"}</span>`;
  }
  if (rule === "lsn") return html`<${Place} ...${common} value=${value} set=${set} />`;
  const isNumber = about?.type === "integer";
  return html`<input ...${common} inputmode=${isNumber ? "numeric" : "text"} value=${value ?? ""} onInput=${(event) => set(isNumber ? number(event.target.value) : event.target.value)} />`;
}

/** A position: a number in Debezium's layout, `0/1A2B` in Postgres's. Both can be typed. */
function Place({ value, set, ...common }) {
  const [typed, type] = useState(/** @type {string | null} */ (null));
  const take = (text) => {
    type(text);
    set(lsn(text) ?? number(text));
  };
  return html`<input ...${common} class="mono" value=${typed ?? value ?? ""} onInput=${(event) => take(event.target.value)} onBlur=${() => type(null)} />`;
}

/** A number where it is one; else the text, which the server then finds fault with. */
function number(text) {
  return /^-?\d+$/.test(text.trim()) ? Number(text) : text;
}

/** What a number means to a person. */
function meaning(value, about) {
  if (about?.["x-rule"] === "lsn" && Number.isInteger(value)) return ` · ${lsnText(value)}`;
  if (/microseconds/.test(about?.description ?? "") && Number.isInteger(value)) return ` · ${time(value / 1000, { ms: true, date: true })}`;
  return "";
}

/** @param {number} value */
export function lsnText(value) {
  return `${Math.floor(value / 2 ** 32).toString(16).toUpperCase()}/${(value % 2 ** 32).toString(16).toUpperCase()}`;
}

/** A field's value for a before and after. */
export function offsetValue(field, value) {
  if (/^lsn(_proc|_commit)?$/.test(field) && Number.isInteger(value)) return `${value} (${lsnText(value)})`;
  if (field === "ts_usec" && Number.isInteger(value)) return `${value} (${time(value / 1000, { ms: true, date: true })})`;
  return value === null || value === undefined ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value);
}
