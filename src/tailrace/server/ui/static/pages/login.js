/** Where the server has a token: asked for once, kept as a cookie that no script can read. */
import { ask, setUserName, userName } from "../api.js";
import { html, useState } from "../html.js";
import { useResource } from "../store.js";
import { Notice } from "../parts/notice.js";

/** @param {{then: string | null}} props */
export function Login({ then }) {
  const session = useResource("/session");
  const [token, setToken] = useState("");
  const [user, setUser] = useState(userName());
  const [error, setError] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  // Only to pages of our own.
  const target = then?.startsWith("/ui/") ? then : "/ui/";
  const enter = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await ask({ method: "POST", path: "/session", body: { token, user: user || undefined } });
      setUserName(user);
      location.assign(target);
    } catch (found) {
      setError(found);
      setBusy(false);
    }
  };
  const isIn = session.data?.is_logged_in || session.data?.needs_token === false;
  return html`<main class="login">
    <div class="card"><form class="body stack" onSubmit=${enter}>
      <p class="brand"><img src="/ui/static/icon.svg" alt="" width="28" />Tailrace</p>
      <h1 tabindex="-1">Log in</h1>
      ${isIn && html`<${Notice} tone="info" text="You are logged in already." action=${html`<a class="button small" href=${target}>To the console</a>`} />`}
      <div class="field"><label for="token">Token</label>
        <input id="token" type="password" autocomplete="current-password" required autofocus value=${token} onInput=${(event) => setToken(event.target.value)} aria-describedby="token-help" />
        <span class="help" id="token-help">The content of the file that <code>tailrace serve --token-file</code> names.</span></div>
      <div class="field"><label for="user">Your name, for histories</label>
        <input id="user" autocomplete="username" maxlength="100" value=${user} onInput=${(event) => setUser(event.target.value)} /></div>
      <div aria-live="assertive">${error && html`<p class="bad">${error.status === 401 ? "That is not the token." : error.message}</p>`}</div>
      <button class="button main" disabled=${busy || !token}>${busy ? html`<span class="spin"></span>` : null}Log in</button>
    </form></div>
  </main>`;
}
