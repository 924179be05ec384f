import {memo} from '../shell/memo';
import {useState} from 'preact/hooks';
import {Icon, type IconName} from '../shell/icons';
import {copyText} from '../text/clipboard';
import {bytes, count, significant} from '../text/format';
import {goOn, regenerate, rewrite} from './answering';
import {put} from './conversations';
import {Prose} from './prose';
import {contentOf, siblings, switchBranch, type Conversation, type Message} from './tree';

function Act({icon, label, act}: {icon: IconName; label: string; act: () => void}) {
  return (
    <button type="button" class="quiet" aria-label={label} title={label} onClick={act}>
      <Icon name={icon} />
    </button>
  );
}

function Copy({text}: {text: string}) {
  const [copied, setCopied] = useState(false);
  const act = async () => {
    setCopied(await copyText(text));
    window.setTimeout(() => setCopied(false), 1500);
  };
  return <Act icon={copied ? 'check' : 'copy'} label={copied ? 'Copied' : 'Copy'} act={() => void act()} />;
}

function Branches({conversation, message}: {conversation: Conversation; message: Message}) {
  const all = siblings(conversation, message.id);
  if (all.length < 2) return null;
  const place = all.indexOf(message.id);
  const go = (step: number) => put(switchBranch(conversation, message.id, step));
  return (
    <span class="branches" role="group" aria-label={`Version ${place + 1} of ${all.length}`}>
      <Act icon="before" label="The version before" act={() => go(-1)} />
      <span class="figures">
        {place + 1}/{all.length}
      </span>
      <Act icon="after" label="The version after" act={() => go(1)} />
    </span>
  );
}

function Editor({message, close, save}: {message: Message; close: () => void; save: (text: string) => void}) {
  const [text, change] = useState(message.text);
  const submit = () => {
    if (text.trim()) save(text);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      event.preventDefault();
      close();
    }
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
  };
  return (
    <div class="editor">
      <textarea aria-label="Edit the message" rows={Math.min(14, text.split('\n').length + 1)} value={text} onKeyDown={onKey}
        onInput={(event) => change(event.currentTarget.value)} ref={(area) => area?.focus()} />
      <div class="buttons">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="primary" onClick={submit}>
          {message.role === 'user' ? 'Send as a new version' : 'Keep as a new version'}
        </button>
      </div>
    </div>
  );
}

function Files({message}: {message: Message}) {
  if (!message.files?.length) return null;
  return (
    <ul class="files" aria-label="Attached files">
      {message.files.map((file) => (
        <li>
          <Icon name="attach" />
          {file.name} <span class="figures">{bytes(file.text.length)}</span>
        </li>
      ))}
    </ul>
  );
}

function Reasoning({message}: {message: Message}) {
  if (!message.reasoning) return null;
  const thinking = message.state === 'writing' && message.text === '';
  return (
    <details class="reasoning" open={thinking || undefined}>
      <summary>{thinking ? 'Thinking…' : 'Thoughts'}</summary>
      <div class="thoughts">{message.reasoning}</div>
    </details>
  );
}

function timingsLine(message: Message): string {
  const {timings} = message;
  if (!timings) return '';
  const cached = timings.cache_n > 0 ? `, ${count(timings.cache_n)} reused` : '';
  return `${count(timings.predicted_n)} tokens at ${significant(timings.predicted_per_second)}/s · prompt ${count(timings.prompt_n + timings.cache_n)}${cached}`;
}

const endings: Partial<Record<Message['state'], string>> = {
  stopped: 'Stopped.',
  cut: 'Cut off at the longest answer allowed, or at the end of the context.',
};

function Answer({message, promptRead}: {message: Message; promptRead: number | undefined}) {
  const ending = message.problem ?? endings[message.state];
  return (
    <>
      <Reasoning message={message} />
      {message.state === 'waiting' && (
        <p class="waiting">{promptRead ? `Reading the prompt: ${Math.round(100 * promptRead)} %` : 'Waiting for the first token'}</p>
      )}
      {message.text && <Prose text={message.text} growing={message.state === 'writing'} />}
      {ending && (
        <p class={message.problem ? 'ending problem' : 'ending'} role={message.problem ? 'alert' : undefined}>
          {ending}
        </p>
      )}
    </>
  );
}

interface Props {
  conversation: Conversation;
  message: Message;
  busy: boolean; // its conversation is being answered: nothing can be done with it meanwhile
  promptRead: number | undefined;
}

function Actions({conversation, message, edit}: {conversation: Conversation; message: Message; edit: () => void}) {
  const answer = message.role === 'assistant';
  const goesOn = answer && message.state !== 'done' && message.text !== '';
  return (
    <div class="actions">
      <Branches conversation={conversation} message={message} />
      <Copy text={contentOf(message)} />
      <Act icon="edit" label="Edit" act={edit} />
      {answer && <Act icon="again" label="Another answer" act={() => regenerate(conversation.id, message.id)} />}
      {goesOn && <Act icon="goOn" label="Go on from here" act={() => goOn(conversation.id, message.id)} />}
      {answer && <span class="timings figures">{timingsLine(message)}</span>}
    </div>
  );
}

/** A message and what can be done with it. */
export const MessageView = memo(
  function MessageView({conversation, message, busy, promptRead}: Props) {
    const [editing, setEditing] = useState(false);
    const save = (text: string) => {
      setEditing(false);
      rewrite(conversation.id, message.id, text);
    };
    return (
      <li class={`message ${message.role}`}>
        <span class="unseen">{message.role === 'user' ? 'You:' : 'Answer:'}</span>
        <Files message={message} />
        {editing && <Editor message={message} close={() => setEditing(false)} save={save} />}
        {!editing && message.role === 'user' && message.text && <div class="words">{message.text}</div>}
        {!editing && message.role === 'assistant' && <Answer message={message} promptRead={promptRead} />}
        {!editing && !busy && (
          <Actions conversation={conversation} message={message} edit={() => setEditing(true)} />
        )}
      </li>
    );
  },
  (before, after) =>
    before.message === after.message &&
    before.busy === after.busy &&
    before.promptRead === after.promptRead &&
    // One that stands still need not be drawn again while the last one grows.
    (after.busy || before.conversation === after.conversation),
);
