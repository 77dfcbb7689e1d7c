"use strict";
// Follows what a job writes, and searches in what is shown of it. Everything that comes is shown as text, and never as anything else.
const MOST = 1 << 20;  // characters that are kept

const button = document.querySelector("[data-follow]");
const shown = document.querySelector("pre.output");
const box = document.querySelector("input[name=find]");
const status = document.querySelector("[data-follows]");

if (shown) {
  let text = shown.textContent;
  let following = null;

  const show = () => {
    const wanted = box.value.toLowerCase();
    const atEnd = shown.scrollTop + shown.clientHeight >= shown.scrollHeight - 4;
    shown.textContent = wanted ? text.split("\n").filter((line) => line.toLowerCase().includes(wanted)).join("\n") : text;
    if (following && atEnd) shown.scrollTop = shown.scrollHeight;
  };
  box.addEventListener("input", show);

  const refusal = async (response) => {
    try { return (await response.json()).detail; } catch { return `the answer was ${response.status}`; }
  };

  async function follow(address, from) {
    const response = await fetch(`${address}?follow=1&offset=${from}`, { signal: following.signal });
    if (!response.ok) return `It cannot be followed: ${await refusal(response)}.`;
    status.textContent = "Followed as it is written.";
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return "The run is over: this is the end of what it has written.";
      text = (text + value).slice(-MOST);
      show();
    }
  }

  if (button) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      button.disabled = true;
      following = new AbortController();
      shown.scrollTop = shown.scrollHeight;
      try {
        status.textContent = await follow(button.dataset.follow, button.dataset.from);
      } catch {
        status.textContent = "The connection was lost: show it again as it is now.";
      }
      following = null;
    });
  }
}
