/**
 * A change of the offsets that is being thought about: its fields, its JSON and what the server says of it.
 *
 * The offset moves while the connector runs. A draft holds only what was changed; all else is as the newest answer has it.
 */
import { ask, connectorPath, get } from "../../api.js";
import { useCallback, useEffect, useMemo, useRef, useState } from "../../html.js";
import { lsn } from "../../format.js";

const PAUSE_MS = 400;
/** The fields that say where a source is read from; an edit moves them together. */
export const PLACES = ["lsn", "lsn_proc", "lsn_commit"];

/**
 * @typedef {{entries: any[], body: any, isChanged: boolean, text: string, textFault: string | null, assessment: any,
 *   error: any, isAsking: boolean, faults: Record<string, string[]>, set: (field: string, value: any) => void,
 *   remove: (field: string) => void, setText: (text: string) => void, moveTo: (position: string, aim?: string | null) => void,
 *   forget: () => void, look: () => Promise<any>}} Draft `look` asks what would follow from where the offset is by then;
 *   its answer has the body that was `asked`.
 */

/** @param {string} name @param {any[]} entries The newest offsets. @param {string | undefined} state @returns {Draft} */
export function useDraft(name, entries, state) {
  const [changes, setChanges] = useState(/** @type {Record<string, any>} */ ({}));
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const [aim, setAim] = useState(/** @type {string | null} */ (null));
  const [answer, setAnswer] = useState(/** @type {any} */ ({ assessment: null, error: null, isAsking: false }));
  const [parsed, textFault] = useMemo(() => (typed === null ? [null, null] : read(typed)), [typed]);
  const body = useMemo(() => parsed ?? { offsets: changed(entries, changes) }, [parsed, entries, changes]);
  const isChanged = typed !== null || Object.keys(changes).length > 0;
  const text = typed ?? JSON.stringify(body, null, 2);
  // While the connector runs, its offset moves every second; what is asked is what the person changed.
  const question = isChanged ? JSON.stringify([changes, typed, state], (_, found) => (found === undefined ? { gone: true } : found)) : "";
  const latest = useRef(/** @type {any} */ (null));
  latest.current = { question, parsed, changes, aim };
  const look = useCallback(async () => {
    const of = latest.current;
    const show = (found) => latest.current.question === of.question && setAnswer({ isAsking: false, ...found });
    try {
      const asked = of.parsed ?? (await wanted(name, of));
      const data = await dryRun(name, asked);
      show({ assessment: data, error: null });
      return { ...data, asked };
    } catch (error) {
      show({ assessment: null, error });
      throw error;
    }
  }, [name]);
  useEffect(() => {
    if (!question || textFault) return setAnswer({ assessment: null, error: null, isAsking: false });
    setAnswer((before) => ({ ...before, isAsking: true }));
    const timer = setTimeout(() => look().catch(() => {}), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [question, textFault]);
  return {
    entries, body, isChanged, text, textFault, ...answer, look,
    faults: faultsOf(answer),
    set: (field, value) => begin(setTyped, setAim, () => setChanges({ ...changes, [field]: value })),
    remove: (field) => begin(setTyped, setAim, () => setChanges({ ...changes, [field]: undefined })),
    setText: setTyped,
    moveTo: (position, key = null) => begin(setTyped, setAim, () => {
      setChanges(movedTo(entries, position));
      setAim(key);
    }),
    forget: () => {
      setAim(null);
      setChanges({});
      setTyped(null);
    },
  };
}

/** The form takes over from the text only once the text was thrown away: they never show two different drafts. */
function begin(setTyped, setAim, change) {
  setTyped(null);
  setAim(null);
  change();
}

/** The server's answer. @param {any} body */
export const dryRun = async (name, body) => (await ask({ method: "PATCH", path: connectorPath(name, "/offsets?dry_run=true"), body })).data;

/** What is to be, from where the offset is by now. A place that moves, such as the end of the source, is looked up again. */
async function wanted(name, { changes, aim }) {
  const { offsets } = await get(connectorPath(name, "/offsets"));
  const at = aim && (await dryRun(name, { offsets })).positions[aim];
  return { offsets: changed(offsets, at ? movedTo(offsets, at) : changes) };
}

function movedTo([first], position) {
  const at = lsn(position);
  const there = PLACES.filter((field) => field in (first?.offset ?? {}));
  return at === null ? {} : Object.fromEntries((there.length ? there : ["lsn"]).map((field) => [field, at]));
}

function changed(entries, changes) {
  const [first, ...others] = entries;
  if (!first) return [];
  const offset = { ...first.offset };
  for (const [field, value] of Object.entries(changes)) {
    if (value === undefined) delete offset[field];
    else offset[field] = value;
  }
  return [{ ...first, offset }, ...others];
}

/** @returns {[any, string | null]} */
function read(text) {
  try {
    const found = JSON.parse(text);
    return typeof found === "object" && found !== null ? [found, null] : [null, "It has to be an object with offsets."];
  } catch (error) {
    return [null, `This is not JSON: ${/** @type {Error} */ (error).message}`];
  }
}

/** Faults by field, of a dry run or of an error. @returns {Record<string, string[]>} */
function faultsOf({ assessment, error }) {
  /** @type {Record<string, string[]>} */
  const found = {};
  for (const each of assessment?.faults ?? []) (found[each.field.split(".").at(-1)] ??= []).push(each.message);
  if (error && error.status === 400) (found.offset ??= []).push(error.message);
  return found;
}
