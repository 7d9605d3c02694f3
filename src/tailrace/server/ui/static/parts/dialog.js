/** Dialogs: the browser's own, so that focus stays inside and Escape closes. */
import { html, useEffect, useId, useRef, useState } from "../html.js";

/** @param {{title: string, close: () => void, children?: any, broad?: boolean}} props Mounted means open. */
export function Dialog({ title, close, children, broad = false }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    element.current?.showModal();
    return () => before?.focus?.();
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    close();
  };
  // A click beside it closes nothing: what was typed would be lost.
  return html`<dialog ref=${element} class=${broad ? "broad" : ""} aria-labelledby=${id} onCancel=${cancel}>
    <div>
      <header><h2 id=${id}>${title}</h2>
        <button type="button" class="button plain small" aria-label="Close" onClick=${close}>✕</button></header>
      ${children}
    </div>
  </dialog>`;
}

/**
 * Asks before something that cannot be taken back: what will follow, as the server says it, and the name to type.
 * @param {{title: string, name?: string, consequences: any[], action: string, run: () => Promise<any>,
 *   close: () => void, children?: any, isReady?: boolean}} props
 */
export function Confirm({ title, name, consequences, action, run, close, children, isReady = true }) {
  const [typed, type] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const fits = (!name || typed === name) && isReady;
  const apply = async () => {
    setBusy(true);
    setError(null);
    try {
      await run();
      close();
    } catch (found) {
      setError(found);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} close=${close}>
    <div class="body">
      <ul class="bullets">${consequences.map((each) => html`<li><span>${each}</span></li>`)}</ul>
      ${children}
      ${name && html`<${TypeName} name=${name} typed=${typed} type=${type} />`}
      ${error && html`<p class="bad" role="alert">${error.message}${error.hint ? ` (${error.hint})` : ""}</p>`}
    </div>
    <footer>
      <button type="button" class="button" onClick=${close}>Cancel</button>
      <button type="button" class="button main danger" disabled=${!fits || busy} onClick=${apply}>
        ${busy ? html`<span class="spin"></span>` : null}${action}</button>
    </footer>
  <//>`;
}

/** @param {{name: string, typed: string, type: (text: string) => void}} props */
export function TypeName({ name, typed, type }) {
  const id = useId();
  return html`<div class="field">
    <label for=${id}>Type <code>${name}</code> to go ahead</label>
    <input id=${id} autocomplete="off" spellcheck=${false} value=${typed} onInput=${(event) => type(event.target.value)} />
  </div>`;
}
