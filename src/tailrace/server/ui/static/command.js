/**
 * Every action on a connector: its request, its words and the rule that forbids it now, in one place.
 */
import { connectorPath } from "./api.js";

/** @typedef {{id: string, label: string, doing: string, reaches: string[], request: import("./api.js").Request,
 *   rule: (progress: any) => string | null, refusal: string}} Action */

/** @param {string} name A connector's. @returns {Record<string, Action>} */
export function actionsOf(name) {
  return {
    pause: {
      id: "pause", label: "Pause", doing: "pausing …", reaches: ["PAUSED"], refusal: "pause",
      request: { method: "PUT", path: connectorPath(name, "/pause") },
      rule: (now) => ({ PAUSED: "it is paused already", STOPPED: "a stopped connector takes nothing already" })[now.target] ?? null,
    },
    resume: {
      id: "resume", label: "Resume", doing: "starting …", reaches: ["RUNNING", "FAILED", "RESTARTING"], refusal: "resume",
      request: { method: "PUT", path: connectorPath(name, "/resume") },
      rule: (now) => (now.target === "RUNNING" ? "it is to run already" : null),
    },
    stop: {
      id: "stop", label: "Stop", doing: "stopping …", reaches: ["STOPPED"], refusal: "stop",
      request: { method: "PUT", path: connectorPath(name, "/stop") },
      rule: (now) => (now.target === "STOPPED" ? "it is stopped already; its lake stays and can be asked" : null),
    },
    restart: {
      id: "restart", label: "Restart", doing: "restarting …", reaches: ["RUNNING", "FAILED", "RESTARTING"], refusal: "restart",
      request: { method: "POST", path: connectorPath(name, "/restart") },
      rule: (now) => (now.target === "STOPPED" ? "a stopped connector is started with Resume" : null),
    },
  };
}

/** What may not be done in this server at all, such as with `tailrace ui`. @param {any} server Of `GET /tailrace`. */
export const refusedHere = (server, refusal) => server?.refusals?.[refusal] ?? null;
