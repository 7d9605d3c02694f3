/** A configuration's properties: each with its verdict, its value and its help; and all others that there are. */
import { html, useId, useState } from "../../html.js";
import { State } from "../../parts/state.js";
import { hides, MASK } from "./draft.js";

const SHOWN_MAX = 60;

/** @param {{draft: any, hidden?: string[]}} props `hidden` are set elsewhere on the page. */
export function Properties({ draft, hidden = ["name"] }) {
  const known = Object.keys(draft.infos).filter((key) => !hidden.includes(key));
  const keys = Object.keys(draft.config).filter((key) => !hidden.includes(key));
  const missing = known.filter((key) => !keys.includes(key) && draft.infos[key].value.errors.length);
  return html`<div class="properties">${[...keys, ...missing].map((key) => html`<${Property} key=${key} name=${key} draft=${draft} />`)}</div>
    <${Others} draft=${draft} others=${known.filter((key) => !keys.includes(key))} />`;
}

function Property({ name, draft }) {
  const id = useId();
  const info = draft.infos[name];
  const errors = info?.value.errors ?? [];
  const about = info && said(info).replace(` (${info.definition.verdict}: ${info.definition.reason})`, "");
  return html`<div class="property field">
    <div class="row apart"><label for=${id}><code class="break">${name}</code></label>
      <span class="row">${draft.base[name] !== draft.config[name] && html`<span class="small warn">${name in draft.base ? "changed" : "new"}</span>`}${info && html`<${State} of=${info.definition.verdict ?? "not known"} quiet />`}</span></div>
    <div class="row nowrap-row"><${Input} id=${id} name=${name} draft=${draft} info=${info} isWrong=${errors.length > 0} />
      <button type="button" class="button plain small" aria-label=${`Remove ${name}`} title="Remove it" onClick=${() => draft.set({ [name]: null })}>✕</button></div>
    <span id=${`${id}-help`} class="help">${about}</span>
    <span role="status">${errors.map((each) => html`<span class="fault">${each} </span>`)}${info?.value.warnings.map((each) => html`<span class="small warn">${each} </span>`)}</span>
  </div>`;
}

/** What it does, without the marks and links of a document. */
const said = (info) => info.definition.documentation.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "");

function Input({ id, name, draft, info, isWrong }) {
  const value = draft.config[name] ?? "";
  const common = { id, "aria-describedby": `${id}-help`, "aria-invalid": isWrong ? "true" : undefined };
  const set = (event) => draft.set({ [name]: event.target.value });
  if (hides(name, draft)) {
    return html`<input ...${common} type="password" autocomplete="new-password" placeholder=${value === MASK ? "stored; type another to replace it" : ""} value=${value === MASK ? "" : value}
      onInput=${(event) => draft.set({ [name]: event.target.value || (draft.base[name] ?? "") })} />`;
  }
  const { type, verdict } = info?.definition ?? {};
  const choices = type === "BOOLEAN" ? ["true", "false"] : type === "LIST" || verdict !== "supported" ? [] : info.value.recommended_values;
  if (choices.length > 1) return html`<select ...${common} value=${value} onChange=${set}>${[...new Set([value, ...choices])].map((each) => html`<option>${each}</option>`)}</select>`;
  return html`<input ...${common} autocomplete="off" spellcheck=${false} value=${value} onInput=${set} />`;
}

/** Every other property: what it does here, or why it does nothing. One that is not listed can be added too. */
function Others({ draft, others }) {
  const [search, find] = useState("");
  const [isOpen, open] = useState(false);
  const shown = others.filter((key) => `${key} ${draft.infos[key].definition.documentation}`.toLowerCase().includes(search.trim().toLowerCase()));
  const add = (key) => {
    draft.set({ [key]: draft.infos[key]?.definition.default_value ?? "" });
    find("");
  };
  const enter = (event) => {
    event.preventDefault();
    if (search.trim()) add(search.trim());
  };
  return html`<form class="row others" onSubmit=${enter}><input type="search" class="search" aria-label="Find or add a property" placeholder="Find or add a property" autocomplete="off" spellcheck=${false} value=${search} onInput=${(event) => find(event.target.value)} />
      <button class="button" disabled=${!search.trim()}>Add</button><button type="button" class="linklike small" aria-expanded=${String(isOpen)} onClick=${() => open(!isOpen)}>All ${others.length} others</button></form>
    ${(isOpen || search.trim()) && html`<div class="scroll" tabindex="0" role="group" aria-label="Other properties"><table><tbody>${shown.slice(0, isOpen ? undefined : SHOWN_MAX).map((key) => html`<tr key=${key}><td><code>${key}</code></td><td><${State} of=${draft.infos[key].definition.verdict} quiet /></td>
      <td class="small">${said(draft.infos[key])}</td><td><button type="button" class="button small" aria-label=${`Set ${key}`} onClick=${() => add(key)}>Set</button></td></tr>`)}</tbody></table></div>`}`;
}
