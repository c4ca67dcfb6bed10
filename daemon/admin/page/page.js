"use strict";
// Reads the page again and puts its parts in place: the server makes the same document with and
// without a script. Nothing is built from texts here.
const EVERY_MS = 2000, TYPED_MS = 250;
const away = document.getElementById("away");
const choice = document.getElementById("choice");
let running = false, again = false, typed = 0;

// What a reader has opened or closed stays so.
function keep_details(from, to) {
  const known = new Map([...from.querySelectorAll("details[data-keep]")]
    .map((each) => [each.dataset.keep, each.open]));
  for (const each of to.querySelectorAll("details[data-keep]")) {
    if (known.has(each.dataset.keep)) each.open = known.get(each.dataset.keep);
  }
}

async function read() {
  if (running) { again = true; return; }
  running = true;
  try {
    const reply = await fetch(location.href, {cache: "no-store"});
    const text = await reply.text();
    if (!reply.ok) throw new Error(text.slice(0, 200));
    const page = new DOMParser().parseFromString(text, "text/html");
    const found = [...page.querySelectorAll(".part")];
    document.title = page.title;
    const icon = (of) => of.querySelector("link[rel=icon]");
    if (icon(document).href !== icon(page).href) icon(document).href = icon(page).href;
    document.querySelectorAll(".part").forEach((now, number) => {
      keep_details(now, found[number]);
      now.replaceWith(document.adoptNode(found[number]));
    });
    away.hidden = true;
  } catch (error) {
    away.textContent = "not up to date: " + error.message;
    away.hidden = false;
  }
  running = false;
  if (again) { again = false; read(); }
}

function choose() {
  const said = new URLSearchParams(new FormData(choice));
  history.replaceState(null, "", "/?" + said);
  read();
}

if (choice) {
  choice.classList.add("live");
  choice.addEventListener("submit", (event) => { event.preventDefault(); choose(); });
  choice.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(choose, TYPED_MS);
  });
}
setInterval(() => { if (!document.hidden) read(); }, EVERY_MS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) read(); });
