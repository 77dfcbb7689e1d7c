"use strict";
// A terminal beside a job: xterm shows it, and a WebSocket carries what is typed and what is written.

const place = document.querySelector("[data-terminal]");
const button = document.querySelector("[data-begin]");
const said = document.querySelector("[data-terminal-state]");

// xterm makes elements of style, which the policy of these pages allows nobody: their text becomes sheets of the document.
function withoutStyleElements() {
  const make = document.createElement.bind(document);
  document.createElement = (name, ...more) => {
    if (String(name).toLowerCase() !== "style") return make(name, ...more);
    const element = make("meta"), sheet = new CSSStyleSheet(), remove = element.remove.bind(element);
    document.adoptedStyleSheets.push(sheet);
    Object.defineProperty(element, "textContent", { set: (text) => sheet.replaceSync(text) });
    Object.defineProperty(element, "sheet", { get: () => sheet });
    element.remove = () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
      remove();
    };
    return element;
  };
}

function begin() {
  place.hidden = false;
  place.replaceChildren();
  button.disabled = true;
  said.textContent = "It is begun …";
  const terminal = new Terminal({ convertEol: false, cursorBlink: false, screenReaderMode: true, scrollback: 5000 });
  const fit = new FitAddon.FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  fit.fit();

  const address = new URL(place.dataset.terminal, location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  const tell = (message) => { if (socket.readyState === WebSocket.OPEN) socket.send(message); };
  const tellSize = () => tell(JSON.stringify({ rows: terminal.rows, columns: terminal.cols }));
  const resized = new ResizeObserver(() => fit.fit());
  let why = "";

  socket.addEventListener("open", () => { tellSize(); terminal.onResize(tellSize); resized.observe(place); });
  socket.addEventListener("message", ({ data }) => {
    if (typeof data !== "string") { terminal.write(new Uint8Array(data)); return; }
    const message = JSON.parse(data);
    if (message.ended) { why = message.ended; return; }
    said.textContent = `Connected with ${message.slot}.`;
    terminal.focus();
  });
  socket.addEventListener("close", () => {
    resized.disconnect();
    terminal.options.disableStdin = true;
    why ||= "the connection was lost";
    said.textContent = `It is over: ${why}.`;
    button.textContent = "Begin again";
    button.disabled = false;
    button.addEventListener("click", () => terminal.dispose(), { once: true });
  });
  const encoder = new TextEncoder();
  const pieces = (bytes) => { for (let at = 0; at < bytes.length; at += 32768) tell(bytes.subarray(at, at + 32768)); };
  terminal.onData((text) => pieces(encoder.encode(text)));
  terminal.onBinary((text) => pieces(Uint8Array.from(text, (each) => each.charCodeAt(0))));
  // Tab belongs to the shell, so there has to be another way out for who has no mouse.
  terminal.attachCustomKeyEventHandler((event) => {
    if (!(event.ctrlKey && event.shiftKey && event.key === "Escape")) return true;
    terminal.blur();
    button.focus();
    return false;
  });
}

if (place) {
  withoutStyleElements();
  button.hidden = false;
  button.addEventListener("click", begin);
}
