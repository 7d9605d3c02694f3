/**
 * A configuration that is being changed: what differs from the stored one, and what the server says of it while one types.
 * A stored secret is a mask here, and goes back as one unless another is typed.
 */
import { ask } from "../../api.js";
import { useEffect, useMemo, useState } from "../../html.js";

export const MASK = "********";
const PAUSE_MS = 350;
const CLASS = "io.debezium.connector.postgresql.PostgresConnector";

/** @param {Record<string, string>} base @param {string | null} connector Whose stored secrets are meant. */
export function useConfigDraft(base, connector) {
  const [changes, change] = useState(/** @type {Record<string, string | null>} */ ({}));
  const [typed, type] = useState(/** @type {string | null} */ (null));
  const [answer, hear] = useState(/** @type {any} */ ({ infos: {}, error: null, of: null }));
  const config = useMemo(() => applied(base, changes), [base, changes]);
  const sent = JSON.stringify(config);
  useEffect(() => {
    const control = new AbortController();
    const path = `/connector-plugins/${encodeURIComponent(config["connector.class"] || CLASS)}/config/validate${connector === null ? "" : `?connector=${encodeURIComponent(connector)}`}`;
    const look = () => ask({ method: "PUT", path, body: config }, control.signal).then(
      ({ data }) => hear({ infos: Object.fromEntries(data.configs.map((each) => [each.definition.name, each])), error: null, of: sent }),
      (error) => control.signal.aborted || hear((before) => ({ ...before, error, of: sent })),
    );
    const timer = setTimeout(look, answer.of === null ? 0 : PAUSE_MS);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [sent, connector]);
  const [, fault] = typed === null ? [] : read(typed);
  const set = (more) => change(Object.fromEntries(Object.entries({ ...changes, ...more }).filter(([key, value]) => value !== (base[key] ?? null))));
  return {
    base, config, set, fault, infos: answer.infos, error: answer.error, isAsking: answer.of !== sent,
    isChanged: Object.keys(changes).length > 0 || !!fault,
    faults: Object.values(answer.infos).filter((each) => each.value.errors.length).length + (answer.error || fault ? 1 : 0),
    text: typed ?? JSON.stringify(config, null, 2),
    setText: (text) => {
      type(text);
      const [found] = text === null ? [] : read(text);
      if (found) set({ ...Object.fromEntries(Object.keys({ ...base, ...changes }).map((key) => [key, null])), ...found });
    },
    forget: () => {
      change({});
      type(null);
    },
  };
}

function applied(base, changes) {
  return Object.fromEntries(Object.entries({ ...base, ...changes }).filter(([, value]) => value !== null).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Its properties, or why it has none. */
function read(text) {
  try {
    const found = Object.entries(JSON.parse(text));
    return [Object.fromEntries(found.map(([key, value]) => [key, value === null || typeof value === "string" ? value : JSON.stringify(value)]))];
  } catch (error) {
    return [null, `This is not JSON: ${/** @type {Error} */ (error).message}`];
  }
}

/** Whether its value may not be seen. A reference to a secret may. */
export const hides = (name, draft) => (draft.base[name] === MASK || draft.infos[name]?.definition.type === "PASSWORD") && !draft.config[name]?.startsWith("${");

/** The configuration with a word in place of each secret that was typed. */
export const shownOf = (draft, word = MASK) => Object.fromEntries(Object.entries(draft.config).map(([key, value]) => [key, value !== MASK && hides(key, draft) ? word : value]));

/** As YAML: a text in JSON is one in YAML too. */
export const yamlOf = (config) => Object.entries(config).map(([key, value]) => `${/^[\w.-]+$/.test(key) ? key : JSON.stringify(key)}: ${JSON.stringify(value)}`).join("\n");
