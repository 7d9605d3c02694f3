/** States: each has a shape, a tone and a word, so that none is told by its colour alone. */
import { html } from "../html.js";

const SHAPES = {
  dot: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z",
  ring: "M8 1.500a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zm0 2.500a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
  half: "M8 1.500a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zm0 2.200v8.600a4.3 4.3 0 0 0 0-8.600z",
  bars: "M3 2h4v12H3zM9 2h4v12H9z",
  square: "M2.5 2.500h11v11h-11z",
  triangle: "M8 1.2 15.2 14H.8z",
  turn: "M8 1.500A6.5 6.5 0 0 1 14.5 8h-2.200A4.3 4.3 0 1 0 8 12.300v2.200a6.5 6.5 0 0 1 0-13z",
  check: "M6.3 13.2 1.5 8.400l1.7-1.7 3.1 3.1 6.5-6.5 1.7 1.700z",
  cross: "M3.4 1.9 8 6.500l4.6-4.6 1.5 1.500L9.5 8l4.6 4.6-1.5 1.500L8 9.500l-4.6 4.6-1.5-1.500L6.5 8 1.9 3.400z",
  minus: "M2 6.800h12v2.400H2z",
  diamond: "M8 1 15 8 8 15 1 8z",
};

/** Of a connector, a table, a copy, a signal, a verdict. Word, shape, tone. */
const WORDS = {
  running: ["running", "dot", "good"], live: ["live", "dot", "good"], up: ["running", "dot", "good"],
  paused: ["paused", "bars", "info"], held: ["paused", "bars", "info"], stopped: ["stopped", "square", "idle"],
  failed: ["failed", "triangle", "bad"], errored: ["in error", "triangle", "bad"], error: ["error", "triangle", "bad"],
  restarting: ["waits to retry", "turn", "warn"], unassigned: ["starting", "half", "info"],
  starting: ["starting", "half", "info"], stuck: ["makes no progress", "triangle", "warn"],
  pending: ["waits for its copy", "ring", "info"], snapshotting: ["being copied", "half", "info"],
  resyncing: ["copied again", "half", "info"], removed: ["left out", "minus", "idle"],
  waiting: ["waiting", "ring", "info"], received: ["received", "ring", "info"], done: ["done", "check", "good"],
  rejected: ["rejected", "cross", "bad"], started: ["started", "half", "info"], "in-progress": ["under way", "half", "info"],
  "table-completed": ["table done", "check", "good"], completed: ["done", "check", "good"],
  aborted: ["ended early", "cross", "warn"], skipped: ["skipped", "minus", "idle"], resumed: ["continued", "half", "info"],
  equal: ["equal", "check", "good"], differs: ["differs", "cross", "bad"], "not compared": ["not compared", "minus", "warn"],
  supported: ["supported", "check", "good"], ignored: ["has no effect here", "minus", "warn"],
  published: ["published", "check", "good"], logged: ["in the log", "ring", "info"],
  stored: ["stored", "check", "info"], prepared: ["prepared", "check", "info"], began: ["began", "triangle", "warn"], over: ["over", "check", "good"],
  succeeded: ["done", "check", "good"], taken: ["applied", "check", "good"], info: ["info", "dot", "idle"], debug: ["debug", "ring", "idle"], warning: ["warning", "triangle", "warn"], critical: ["critical", "triangle", "bad"],
  refused: ["refused", "cross", "bad"], applied: ["applied", "check", "good"], undone: ["taken back", "minus", "idle"],
};

/** @param {string} state Of the API, in any case. @returns {[string, string, string]} */
export function wordOf(state) {
  return WORDS[String(state).toLowerCase()] ?? [String(state).toLowerCase().replaceAll("_", " "), "ring", "idle"];
}

export function Shape({ name, turning = false, tone = "" }) {
  return html`<svg class="shape ${turning ? "turning" : ""} ${tone}" viewBox="0 0 16 16" aria-hidden="true">
    <path d=${SHAPES[name] ?? SHAPES.ring} fill-rule="evenodd" />
  </svg>`;
}

/** @param {{of: string, word?: string, quiet?: boolean, tone?: string}} props `word` instead of the state's own. */
export function State({ of, word, quiet = false, tone }) {
  const [own, shape, ownTone] = wordOf(of);
  const turning = shape === "turn";
  return html`<span class="state tone-${tone ?? ownTone} ${quiet ? "quiet" : ""}">
    <${Shape} name=${shape} turning=${turning} />${word ?? own}
  </span>`;
}

/** A connector's word for a progress of the API: running but stuck is not shown as running. */
export function connectorState(progress) {
  const state = progress?.state ?? "UNASSIGNED";
  if (state === "RUNNING" && progress.why_not) return "stuck";
  if (state === "RUNNING" && progress.run_state === "snapshotting") return "snapshotting";
  return state.toLowerCase();
}

/** Worst first. */
const ORDER = ["failed", "stuck", "restarting", "unassigned", "snapshotting", "running", "paused", "stopped"];

/** @param {string} state Of `connectorState`. */
export const urgency = (state) => (ORDER.includes(state) ? ORDER.indexOf(state) : 4);

/** @returns {number} The smaller, the more it needs a person. */
export function trouble(progress) {
  const state = connectorState(progress);
  const place = urgency(state);
  const errored = progress?.tables?.errored ? 0.5 : 0;
  if (state === "running" && progress.trouble) return 1.2;
  if (errored && place > 1) return 1.5;
  return place;
}
