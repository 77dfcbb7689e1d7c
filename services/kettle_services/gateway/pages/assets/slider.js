// The slider through time: the page is shown again as of the moment where it is let go.

for (const root of document.querySelectorAll("[data-slider]")) {
  const slider = root.querySelector("input");
  const said = root.querySelector("[data-said]");
  const last = Number(slider.max);

  const say = () => {
    const moment = new Date(Number(slider.value) * 1000).toISOString().slice(0, 19).replace("T", " ");
    said.textContent = Number(slider.value) === last ? "now" : `${moment} UTC`;
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  slider.addEventListener("input", say);
  slider.addEventListener("change", () => {
    const address = new URL(root.dataset.address, location.href);
    const moment = new Date(Number(slider.value) * 1000);
    if (Number(slider.value) < last) address.searchParams.set("as_of", moment.toISOString());
    location.assign(address);
  });
  // An arrow key goes a hundredth of the way, which is a quarter of an hour of a day.  The step stays a second: a browser
  // puts the slider on a multiple of it.
  const stride = Math.max(1, Math.round((last - Number(slider.min)) / 100));
  slider.addEventListener("keydown", (event) => {
    const ways = { ArrowLeft: -stride, ArrowDown: -stride, ArrowRight: stride, ArrowUp: stride };
    if (!(event.key in ways)) return;
    event.preventDefault();
    slider.value = String(Number(slider.value) + ways[event.key]);
    slider.dispatchEvent(new Event("input"));
    slider.dispatchEvent(new Event("change"));
  });
  say();
  root.hidden = false;
}
