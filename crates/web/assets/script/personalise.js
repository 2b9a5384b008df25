// The HTML of a message is the same for every reader. This adds what depends on the reader: times by their clock, and
// marks on their own reactions and on mentions of them.

import { createElement, user } from "./page.js";

const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function formatTimes(within) {
  for (const time of within.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    const isToday = date.toDateString() === new Date().toDateString();
    time.textContent = (isToday ? timeOfDay : dateAndTime).format(date);
    time.title = dateAndTime.format(date);
  }
}

export function personalise(within) {
  formatTimes(within);
  for (const mention of within.querySelectorAll(".at")) {
    if (mention.textContent === `@${user}`) mention.classList.add("me");
  }
  for (const reaction of within.querySelectorAll(".chip[data-reaction]")) {
    reaction.classList.toggle("mine", reaction.title.split(", ").includes(user));
  }
}

// HTML that the server rendered, as nodes that can be inserted into the page.
export function parseFragment(html) {
  const template = createElement("template", { innerHTML: html });
  personalise(template.content);
  return template.content;
}
