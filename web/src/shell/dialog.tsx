import type {ComponentChildren} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {Icon} from './icons';

interface Props {
  title: string;
  open: boolean;
  close: () => void;
  side?: 'left' | 'right';
  children: ComponentChildren;
}

/** A modal dialog of the browser's own: it holds the focus, gives it back, and Escape closes it. */
export function Dialog({title, open, close, side, children}: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open && dialog.current?.open) dialog.current.close();
  }, [open]);
  const closeOutside = (event: MouseEvent) => {
    if (event.target === dialog.current) close();
  };
  return (
    <dialog ref={dialog} class={side ? `sheet ${side}` : 'window'} aria-label={title} onClose={close} onClick={closeOutside}>
      {open && (
        <div class="sheet-body">
          <header>
            <h2>{title}</h2>
            <button type="button" class="quiet" aria-label="Close" onClick={close}>
              <Icon name="close" />
            </button>
          </header>
          {children}
        </div>
      )}
    </dialog>
  );
}
