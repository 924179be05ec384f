import type {Timings} from '../api/types';

/** A conversation is a tree: each edit and each new answer is a branch beside the old one, and nothing is lost. */
export interface TextFile {
  name: string;
  text: string;
}

export interface Message {
  id: string;
  parent: string; // another message's, or kRoot
  role: 'user' | 'assistant';
  text: string;
  reasoning?: string;
  files?: TextFile[];
  created: number;
  /** Of answers: `cut` ended at a limit of tokens. */
  state: 'done' | 'waiting' | 'writing' | 'stopped' | 'cut' | 'failed';
  problem?: string;
  timings?: Timings;
}

export interface Conversation {
  id: string;
  title: string;
  created: number;
  changed: number;
  messages: Record<string, Message>; // in the order in which they were added
  chosen: Record<string, string>; // [parent]: which of its children is shown
}

export const kRoot = 'root';

/** Random, and not made of digits alone: such keys of an object would not keep their order. */
export function newId(): string {
  const numbers = crypto.getRandomValues(new Uint32Array(3));
  return `m${Array.from(numbers, (number) => number.toString(36)).join('')}`;
}

export function newConversation(now: number): Conversation {
  return {id: newId(), title: '', created: now, changed: now, messages: {}, chosen: {}};
}

/** The messages shown, first to last. */
export function path(conversation: Conversation): Message[] {
  const shown: Message[] = [];
  for (let id = conversation.chosen[kRoot]; id !== undefined; id = conversation.chosen[id]) {
    const message = conversation.messages[id];
    if (!message) break;
    shown.push(message);
  }
  return shown;
}

/** The messages up to and including one. */
export function pathTo(conversation: Conversation, id: string): Message[] {
  const before: Message[] = [];
  for (let message = conversation.messages[id]; message; message = conversation.messages[message.parent]) {
    before.unshift(message);
  }
  return before;
}

/** All children of a message's parent, itself among them. */
export function siblings(conversation: Conversation, id: string): string[] {
  const parent = conversation.messages[id]?.parent;
  return Object.values(conversation.messages)
    .filter((message) => message.parent === parent)
    .map((message) => message.id);
}

/** With one more message, which is shown. */
export function add(conversation: Conversation, message: Message): Conversation {
  return {
    ...conversation,
    title: conversation.title || titleOf(message),
    changed: Math.max(conversation.changed, message.created),
    messages: {...conversation.messages, [message.id]: message},
    chosen: {...conversation.chosen, [message.parent]: message.id},
  };
}

export function change(conversation: Conversation, id: string, changes: Partial<Message>): Conversation {
  const message = conversation.messages[id];
  if (!message) return conversation;
  return {...conversation, messages: {...conversation.messages, [id]: {...message, ...changes}}};
}

/** Shows the branch that is `step` beside a message's; nothing changes at either end. */
export function switchBranch(conversation: Conversation, id: string, step: number): Conversation {
  const all = siblings(conversation, id);
  const next = all[all.indexOf(id) + step];
  const parent = conversation.messages[id]?.parent;
  if (next === undefined || parent === undefined) return conversation;
  return {...conversation, chosen: {...conversation.chosen, [parent]: next}};
}

function titleOf(message: Message): string {
  const line = message.text.trim().split('\n')[0] || message.files?.[0]?.name || '';
  return line.length > 60 ? `${line.slice(0, 59).trimEnd()}…` : line;
}

/** A message's text as the model reads it: files first, each in a fence that it cannot close. */
export function contentOf(message: Message): string {
  const files = (message.files ?? []).map(({name, text}) => {
    const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((ticks) => ticks.length));
    const fence = '`'.repeat(longest + 1);
    return `${name}:\n${fence}\n${text.replace(/\n$/, '')}\n${fence}\n\n`;
  });
  return files.join('') + message.text;
}

/** What is sent for an answer to the last of these messages, or for the rest of it if it is an answer itself. */
export function requestMessages(messages: Message[], system: string): {role: string; content: string}[] {
  const sent = messages
    .filter((message) => message.role === 'user' || message.text !== '')
    .map((message) => ({role: message.role, content: contentOf(message)}));
  return system.trim() ? [{role: 'system', content: system}, ...sent] : sent;
}

/** The shown branch as a Markdown text. */
export function asMarkdown(conversation: Conversation): string {
  const parts = path(conversation).map(
    (message) => `## ${message.role === 'user' ? 'You' : 'Answer'}\n\n${contentOf(message)}\n`,
  );
  return [`# ${conversation.title}\n`, ...parts].join('\n');
}
