/** "The same from a shell": every action as curl, command line, Python or SQL, ready to paste. */
import { html, useState } from "../html.js";
import { Dialog } from "./dialog.js";

const NAMES = { curl: "curl", cli: "Command line", python: "Python", sql: "SQL", yaml: "YAML" };

/** @param {string} text */
export async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Only pages of this machine or with TLS may use the clipboard.
    const area = Object.assign(document.createElement("textarea"), { value: text });
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** @param {{text: string, label?: string, small?: boolean}} props */
export function CopyButton({ text, label = "Copy", small = true }) {
  const [said, say] = useState("");
  const copy = async () => {
    say((await toClipboard(text)) ? "Copied" : "Select it and press Ctrl-C");
    setTimeout(() => say(""), 2000);
  };
  return html`<button type="button" class="button plain ${small ? "small" : ""}" onClick=${copy}>
    <span aria-live="polite">${said || label}</span>
  </button>`;
}

/** A value between single quotes for a shell. @param {string} text */
export const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** @param {import("../api.js").Request} request */
export function curlOf(request) {
  const parts = ["curl -s"];
  if (request.method !== "GET") parts.push(`-X ${request.method}`);
  parts.push(quoted(location.origin + request.path));
  for (const [key, value] of Object.entries(request.headers ?? {})) parts.push(`-H ${quoted(`${key}: ${value}`)}`);
  if (request.body !== undefined) {
    parts.push(`-H 'content-type: application/json'`, `-d ${quoted(JSON.stringify(request.body))}`);
  }
  return parts.join(" ");
}

/** @param {import("../api.js").Request} request */
export function pythonOf(request) {
  const more = [];
  if (request.headers) more.push(`headers=${_python(request.headers)}`);
  if (request.body !== undefined) more.push(`json=${_python(request.body)}`);
  const tail = more.length ? `, ${more.join(", ")}` : "";
  return `import httpx\n\nanswer = httpx.request("${request.method}", ${JSON.stringify(location.origin + request.path)}${tail})\n`
    + "answer.raise_for_status()\nprint(answer.text)";
}

function _python(value) {
  if (value === null || value === undefined) return "None";
  if (value === true || value === false) return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(_python).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${_python(each)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

/**
 * @param {{request: import("../api.js").Request, cli?: string, sql?: string, python?: string, yaml?: string, label?: string}} props
 */
export function CopyAs({ request, cli, sql, python, yaml, label = "Copy as …" }) {
  const [isOpen, open] = useState(false);
  return html`<button type="button" class="button plain small" onClick=${() => open(true)}>${label}</button>
    ${isOpen && html`<${Ways} ways=${{ curl: curlOf(request), cli, python: python ?? pythonOf(request), sql, yaml }}
      close=${() => open(false)} />`}`;
}

function Ways({ ways, close }) {
  const there = Object.entries(ways).filter(([, text]) => text);
  const [chosen, choose] = useState(there[0][0]);
  const text = ways[chosen];
  return html`<${Dialog} title="The same from outside" close=${close}>
    <div class="body">
      <div class="chips" role="group" aria-label="As">
        ${there.map(([key]) => html`<button type="button" class="chip" aria-pressed=${String(key === chosen)}
          onClick=${() => choose(key)}>${NAMES[key]}</button>`)}
      </div>
      <pre class="paste" tabindex="0">${text}</pre>
    </div>
    <footer><${CopyButton} text=${text} small=${false} />
      <button type="button" class="button" onClick=${close}>Close</button></footer>
  <//>`;
}
