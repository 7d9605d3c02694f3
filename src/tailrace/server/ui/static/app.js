/** The console: the frame around every page, and which page is shown. */
import { Known, useKnownNow } from "./shared.js";
import { Frame } from "./frame.js";
import { html, render, useEffect, useErrorBoundary, useRef } from "./html.js";
import { startListening } from "./live.js";
import { useRoute } from "./router.js";
import { Overview } from "./pages/overview.js";
import { ConnectorPage } from "./pages/connector.js";
import { Login } from "./pages/login.js";
import { NewConnector } from "./pages/new.js";
import { applyTheme, ServerPage } from "./pages/server.js";
import { Work } from "./pages/work.js";
import { Empty, Failure } from "./parts/notice.js";

const PAGES = { overview: [Overview, "Overview"], new: [NewConnector, "New connector"], work: [Work, "Work"], server: [ServerPage, "Server"] };

function App() {
  const route = useRoute();
  const heading = useRef(/** @type {any} */ (null));
  const place = `${route.page}/${route.name}/${route.tab}`;
  useEffect(() => {
    document.title = titleOf(route);
    // Whoever came here by keyboard or hears the page begins at its heading.
    if (heading.current && heading.current !== place) document.querySelector("main h1")?.focus({ preventScroll: true });
    if (heading.current !== place) scrollTo(0, 0);
    heading.current = place;
  }, [place]);
  if (route.page === "login") return html`<${Login} then=${route.query.get("then")} />`;
  return html`<${Inside} route=${route} />`;
}

function Inside({ route }) {
  const known = useKnownNow();
  return html`<${Known.Provider} value=${known}><${Frame} route=${route}><${Guarded} key=${`${route.page}/${route.name}/${route.tab}`}>${shown(route)}<//><//><//>`;
}

/** A page that breaks says so, and leaves the frame and all other pages usable. */
function Guarded({ children }) {
  const [error, again] = useErrorBoundary((found) => console.error(found));
  if (error) return html`<h1 tabindex="-1">This page broke</h1><${Failure} error=${error} again=${again} what="It is a fault of the console, not of your data" />`;
  return children;
}

function shown(route) {
  if (route.page === "connector") return html`<${ConnectorPage} key=${route.name} route=${route} />`;
  const found = PAGES[route.page];
  if (found) return html`<${found[0]} route=${route} />`;
  return html`<h1 tabindex="-1">There is no such page</h1><${Empty} title=${location.pathname}><a href="/ui/">Overview</a><//>`;
}

function titleOf(route) {
  if (route.page === "connector") return [route.name, route.tab, "Tailrace"].filter(Boolean).join(" · ");
  return [PAGES[route.page]?.[1] ?? route.page, "Tailrace"].join(" · ");
}

applyTheme();
if (!location.pathname.startsWith("/ui/login")) startListening();
const place = /** @type {HTMLElement} */ (document.getElementById("app"));
place.textContent = "";
render(html`<${App} />`, place);
