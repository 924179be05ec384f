import {useEffect, useRef, useState} from 'preact/hooks';
import {Icon} from '../shell/icons';
import {keptStore, useStore} from '../store';
import {bytes} from '../text/format';
import {send, stop} from './answering';
import {openId} from './conversations';
import {readTextFile} from './files';
import type {TextFile} from './tree';

const draft = keptStore('coterie.draft', '');

/** Files on their way into a message, and why the last one did not make it. */
function useFiles() {
  const [files, setFiles] = useState<TextFile[]>([]);
  const [problem, setProblem] = useState('');
  const take = async (list: Iterable<File>) => {
    setProblem('');
    for (const file of list) {
      try {
        const read = await readTextFile(file);
        setFiles((before) => [...before, read]);
      } catch (error) {
        setProblem((error as Error).message);
      }
    }
  };
  const drop = (index: number) => setFiles((before) => before.filter((_, i) => i !== index));
  return {files, problem, take, drop, clear: () => setFiles([])};
}

/** Takes files that are dropped anywhere on the page. */
function useDropped(take: (files: Iterable<File>) => void): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const drag = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      setOver(event.type === 'dragover');
      if (event.type === 'drop') take(event.dataTransfer.files);
    };
    const kinds = ['dragover', 'dragleave', 'drop'] as const;
    for (const kind of kinds) window.addEventListener(kind, drag);
    return () => kinds.forEach((kind) => window.removeEventListener(kind, drag));
  }, []);
  return over;
}

function FileList({files, drop}: {files: TextFile[]; drop: (index: number) => void}) {
  if (files.length === 0) return null;
  return (
    <ul class="files" aria-label="Files to send">
      {files.map((file, index) => (
        <li>
          <Icon name="attach" />
          {file.name} <span class="figures">{bytes(file.text.length)}</span>
          <button type="button" class="quiet" aria-label={`Leave out ${file.name}`} onClick={() => drop(index)}>
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}

function grow(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = 'auto';
  area.style.height = `${area.scrollHeight}px`;
}

export function Composer({answering, sent}: {answering: boolean; sent: () => void}) {
  const text = useStore(draft);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const {files, problem, take, drop, clear} = useFiles();
  const over = useDropped((list) => void take(list));
  useEffect(() => grow(area.current), [text]);
  const empty = text.trim() === '' && files.length === 0;
  const submit = (event?: Event) => {
    event?.preventDefault();
    if (answering || empty) return;
    send(text, files);
    draft.set('');
    clear();
    sent();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event);
  };
  const pick = (event: Event) => {
    const input = event.currentTarget as HTMLInputElement;
    void take([...(input.files ?? [])]);
    input.value = '';
  };
  return (
    <form class={over ? 'composer over' : 'composer'} onSubmit={submit}>
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div class="composer-box">
        <FileList files={files} drop={drop} />
        <textarea id="prompt" ref={area} rows={1} placeholder="Ask something" aria-label="Your message" autoFocus value={text}
          onInput={(event) => draft.set(event.currentTarget.value)} onKeyDown={onKey} />
        <div class="composer-tools">
          <input ref={picker} type="file" multiple hidden onChange={pick} />
          <button type="button" class="quiet" aria-label="Attach text files" title="Attach text files" onClick={() => picker.current?.click()}>
            <Icon name="attach" />
          </button>
          {answering ? (
            <button type="button" class="primary round" aria-label="Stop" title="Stop (Esc)" onClick={() => stop(openId.value)}>
              <Icon name="stop" />
            </button>
          ) : (
            <button class="primary round" aria-label="Send" title="Send (Enter)" disabled={empty}>
              <Icon name="send" />
            </button>
          )}
        </div>
      </div>
    </form>
  );
}
