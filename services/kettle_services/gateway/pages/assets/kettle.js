"use strict";
// What pages do beside htmx: the theme, times that grow older, keys, and how live a page is. Every page works without it.
(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

  for (const button of all("[data-theme-switch]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      document.cookie = `kettle_theme=${root.dataset.theme};path=${meta("prefix")};max-age=31536000;samesite=lax`;
    });
  }

  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  function ago(seconds) {
    const left = Math.floor(Math.abs(seconds));
    if (left < 1) return "now";
    const [length, unit] = units.find(([length]) => left >= length);
    const said = `${Math.floor(left / length)} ${unit}`;
    return seconds > 0 ? `${said} ago` : `in ${said}`;
  }
  function age() {
    if (document.hidden || document.querySelector(".moment.past")) return;
    for (const each of all("time[datetime]")) {
      const part = each.querySelector(".ago");
      const said = part && ago((Date.now() - new Date(each.dateTime)) / 1000);
      if (part && part.textContent !== said) part.textContent = said;
    }
  }
  setInterval(age, 5000);  // not at once: it is as old as it says
  document.addEventListener("visibilitychange", age);
  let clock;  // made when it is wanted: to make one takes longer than all that a page does else
  document.addEventListener("pointerover", (event) => {
    const there = event.target.closest?.("time[datetime]");
    if (!there || there.title) return;
    clock ??= new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });
    there.title = `${clock.format(new Date(there.dateTime))} on your clock`;
  });

  if (matchMedia("(max-width: 50rem)").matches) all(".menu").forEach((menu) => { menu.open = false; menu.dataset.closed = ""; });

  const live = document.querySelector("[data-live-state]");
  const says = (state, text) => { if (live) { live.dataset.liveState = state; live.textContent = text; } };
  document.addEventListener("htmx:sse:after:connection", () => says("on", "Live"));
  document.addEventListener("htmx:sse:after:message", () => says("on", "Live"));
  const lost = (status, why) => {
    says("off", status === 401 ? "You are signed out: " : `Not live: ${why}, trying again`);
    if (status !== 401 || !live) return;
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "sign in";
    live.append(link);
  };
  document.addEventListener("htmx:sse:error", (event) => lost(event.detail?.status, "the connection was lost"));
  for (const name of ["htmx:error", "htmx:response:error"]) {
    document.addEventListener(name, (event) => {  // the first connection failed: nobody else tries it again
      if (!event.target.matches?.("[hx-trigger~=again]")) return;
      lost(event.detail?.ctx?.response?.status, "no answer");
      setTimeout(() => htmx.trigger(event.target, "again"), 2000);
    });
  }
  document.addEventListener("htmx:before:request", (event) => {
    if (!document.hidden || !event.target.matches?.("[hx-trigger~=again]")) return;
    event.preventDefault();  // tabs that nobody has looked at yet would take the few connections that a browser makes
    document.addEventListener("visibilitychange", () => htmx.trigger(event.target, "again"), { once: true });
  });
  document.addEventListener("trouble", (event) => says("off", `Not live: ${event.detail?.data ?? "no answer"}`));

  document.addEventListener("htmx:config:request", (event) => {
    const token = meta("csrf");
    if (token) event.detail.ctx.request.headers["X-CSRF-Token"] = token;
  });

  document.addEventListener("change", (event) => {
    const name = event.target.dataset?.all;
    if (name) all(`input[name="${name}"]`).forEach((each) => { each.checked = event.target.checked; });
  });

  function sift(box) {
    const wanted = box.value.toLowerCase();
    for (const row of all(`${box.dataset.sift} tbody tr`)) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
  document.addEventListener("input", (event) => { if (event.target.matches("[data-sift]")) sift(event.target); });
  document.addEventListener("htmx:sse:after:message", () => all("[data-sift]").forEach(sift));
  document.addEventListener("htmx:before:morph:attr", (event) => {  // what somebody has unfolded stays so
    if (event.target.matches("details") && event.detail.attrName === "open") event.preventDefault();
  });

  const pages = { h: "", j: "jobs", w: "workflows", s: "submit", m: "machines", p: "history" };
  let pending = false;
  function row(step) {
    const links = all(".rows tbody th a");
    if (!links.length) return;
    const now = links.findIndex((each) => each.closest("tr").contains(document.activeElement));
    links[Math.max(0, Math.min(links.length - 1, now + step))].focus();
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
    if (pending && event.key in pages) location.href = meta("prefix") + pages[event.key];
    pending = event.key === "g";
    if (event.key === "/") { document.querySelector("[data-filter]")?.focus(); event.preventDefault(); }
    if (event.key === "j") row(1);
    if (event.key === "k") row(-1);
    if (event.key === "x") document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]")?.click();
  });
})();
