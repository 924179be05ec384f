import {Component, h, type ComponentType, type FunctionComponent} from 'preact';

/** The component, drawn again only where `same` says that its properties differ. */
export function memo<P extends object>(inner: FunctionComponent<P>, same: (before: P, after: P) => boolean): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      return !same(this.props as P, next as P);
    }
    override render() {
      return h(inner as FunctionComponent<object>, this.props);
    }
  };
}
