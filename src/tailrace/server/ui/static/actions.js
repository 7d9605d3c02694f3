/** Doing something and showing in place what became of it. */
import { ask, ApiError } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { refusedHere } from "./command.js";

const PATIENCE_MS = 120000;

/**
 * One action at a time: what it is doing, and how it ended.
 * @returns {{busy: boolean, outcome: {tone: string, text: string, hint?: string | null} | null,
 *   run: (what: () => Promise<string | void>) => Promise<boolean>, clear: () => void}}
 */
export function useOutcome() {
  const [busy, setBusy] = useState(false);
  const [outcome, set] = useState(/** @type {any} */ (null));
  const run = async (what) => {
    setBusy(true);
    set(null);
    try {
      const text = await what();
      set(text ? { tone: "done", text } : null);
      return true;
    } catch (error) {
      const known = error instanceof ApiError;
      set({ tone: "failed", text: known ? error.message : String(error), hint: known ? error.hint : null });
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy, outcome, run, clear: () => set(null) };
}

/** @param {{outcome: any, busy?: boolean, doing?: string}} props */
export function Outcome({ outcome, busy = false, doing = "…" }) {
  return html`<span class="outcome ${outcome?.tone ?? ""}" role="status" aria-live="polite">
    ${busy ? html`<span class="spin"></span>${doing}` : outcome ? html`${outcome.text}${outcome.hint ? ` · ${outcome.hint}` : ""}` : ""}
  </span>`;
}

/** @type {Map<string, {id: string, doing: string, reaches: string[], began: number, wasOther: boolean}>} */
const pending = new Map();

/** What was asked of a connector and is not yet so. */
export const pendingOf = (name) => pending.get(name) ?? null;

/** Whether the state says that what was asked is done. @param {any} progress */
export function settle(name, progress) {
  const asked = pending.get(name);
  if (!asked || !progress) return;
  if (!asked.reaches.includes(progress.state)) asked.wasOther = true;
  const reached = asked.reaches.includes(progress.state) && (asked.id !== "restart" || asked.wasOther || Date.now() - asked.began > 3000);
  if (reached || Date.now() - asked.began > PATIENCE_MS) pending.delete(name);
}

/**
 * Sends an action, and remembers it until the state says that it is done.
 * @param {string} name @param {import("./command.js").Action} action
 */
export async function act(name, action) {
  await ask(action.request);
  pending.set(name, { id: action.id, doing: action.doing, reaches: action.reaches, began: Date.now(), wasOther: false });
}

const ICONS = {
  pause: "M4 2h3v12H4zM9 2h3v12H9z", resume: "M4 2l10 6-10 6z", stop: "M3 3h10v10H3z",
  restart: "M8 2.500a5.5 5.5 0 1 1-5.2 3.700l1.9.7A3.5 3.5 0 1 0 8 4.500V7L3.8 3.5 8 0z",
};

/**
 * A button of an action. One that cannot be used stays there, and says why.
 * @param {{name: string, action: import("./command.js").Action, progress: any, server: any, icon?: boolean, main?: boolean,
 *   done: () => void, failed: (error: any) => void}} props
 */
export function ActionButton({ name, action, progress, server, icon = false, main = false, done, failed }) {
  const [busy, setBusy] = useState(false);
  const isThere = useRef(true);
  useEffect(() => () => void (isThere.current = false), []);
  const rule = refusedHere(server, action.refusal) ?? (progress ? action.rule(progress) : "its state is not known yet");
  const press = async () => {
    if (rule || busy) return;
    setBusy(true);
    try {
      await act(name, action);
      done();
    } catch (error) {
      failed(error);
    }
    if (isThere.current) setBusy(false);
  };
  const label = icon ? `${action.label} ${name}` : undefined;
  return html`<button type="button" class="button ${icon ? "small plain" : ""} ${main ? "main" : ""}" aria-label=${label}
    aria-disabled=${rule || busy ? "true" : undefined} title=${rule ? `${action.label}: ${rule}` : action.label} onClick=${press}>
    <svg viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[action.id]} /></svg>${icon ? null : action.label}
  </button>`;
}
