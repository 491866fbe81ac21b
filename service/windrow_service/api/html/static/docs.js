// Makes the page of the API dark like the reader's system, signs its calls in by the session of the
// dashboard, and links both. It runs before the page's other scripts, which call `fetch`.

const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
paint();
dark.addEventListener("change", paint);

const send = window.fetch.bind(window);
// Only pages of this origin know the value, and no other origin may send the header.
const form = send("dashboard/you").then(async (answer) => {
  if (!answer.ok || answer.redirected) return null;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const you = page.querySelector("[data-name]");
  if (!you) return null;
  const { name, form } = you.dataset;
  document.getElementById("you").textContent = form ? `Signed in as ${name}` : "No token is required";
  return form;
}).catch(() => null);

window.fetch = async (resource, options = {}) => {
  const url = new URL(resource.url ?? resource, location.href);
  const headers = new Headers(options.headers);
  if (url.origin === location.origin && !headers.has("Authorization")) {
    const value = await form;
    if (value) headers.set("X-Windrow-Form", value);
  }
  return send(resource, { ...options, headers });
};
