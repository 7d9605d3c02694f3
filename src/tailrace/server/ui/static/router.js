/** Which page a path shows. The path is all there is: it can be kept, sent and opened again. */
import { useEffect, useState } from "./html.js";

/** @typedef {{page: string, name: string | null, tab: string, query: URLSearchParams, path: string}} Route */

/** @returns {Route} */
export function route() {
  const parts = location.pathname.replace(/^\/ui\/?/, "").split("/").filter(Boolean).map(_decoded);
  const query = new URLSearchParams(location.search);
  const path = location.pathname;
  if (parts[0] === "c" && parts.length >= 2) return { page: "connector", name: parts[1], tab: parts[2] ?? "", query, path };
  return { page: parts[0] ?? "overview", name: null, tab: parts[1] ?? "", query, path };
}

/** @param {string} name @param {string} [tab] @param {Record<string, string | number>} [query] */
export function linkTo(name, tab = "", query = {}) {
  const asked = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)])).toString();
  return `/ui/c/${encodeURIComponent(name)}${tab ? `/${tab}` : ""}${asked ? `?${asked}` : ""}`;
}

/** @param {string} path @param {boolean} [replace] Whether Back leads past what was shown before. */
export function go(path, replace = false) {
  if (path === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", path);
  dispatchEvent(new Event("tailrace:route"));
}

/** Changes the query of the page that is shown. @param {Record<string, string | null>} changes */
export function goWith(changes) {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), true);
}

/** The page that is shown; follows links without loading the page again. */
export function useRoute() {
  const [shown, set] = useState(route());
  useEffect(() => {
    const look = () => set(route());
    addEventListener("popstate", look);
    addEventListener("tailrace:route", look);
    document.addEventListener("click", _follow);
    return () => {
      removeEventListener("popstate", look);
      removeEventListener("tailrace:route", look);
      document.removeEventListener("click", _follow);
    };
  }, []);
  return shown;
}

/** @param {MouseEvent} event */
function _follow(event) {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = /** @type {Element} */ (event.target).closest?.("a[href]");
  if (!link || link.hasAttribute("download") || link.getAttribute("target")) return;
  // A place in this page: the browser knows the way.
  if (link.getAttribute("href")?.startsWith("#")) return;
  const to = new URL(link.getAttribute("href") ?? "", location.href);
  if (to.origin !== location.origin || !to.pathname.startsWith("/ui/") || to.pathname.startsWith("/ui/static/")) return;
  event.preventDefault();
  if (to.pathname + to.search !== location.pathname + location.search) go(to.pathname + to.search);
}

function _decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
