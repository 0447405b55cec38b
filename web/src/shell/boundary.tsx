import { TriangleAlert } from 'lucide-react';
import { Component, type ReactNode } from 'react';
import type { Link } from '../api/live';
import { useLanguage } from '../i18n';
import { Button, Empty } from '../ui/basic';

function Broken({ error }: { error: Error }) {
  const { t } = useLanguage();
  return (
    <main className="page" id="main">
      <Empty
        whole
        icon={TriangleAlert}
        title={t('broken.title')}
        actions={
          <Button look="primary" onClick={() => location.reload()}>
            {t('broken.reload')}
          </Button>
        }
      >
        <p>{t('broken.text')}</p>
        <pre className="quote">{error.message}</pre>
      </Empty>
    </main>
  );
}

interface Props {
  /** Whoever goes on from a page that is broken leaves that behind. */
  place: string;
  /** What a page could not do without the daemon it can when that is back. */
  link: Link;
  children: ReactNode;
}

/** A mistake in one page leaves the others alone. */
export class Boundary extends Component<Props, { error: Error | null }> {
  override state = { error: null as Error | null };
  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }
  override componentDidUpdate(before: Props) {
    const { link, place } = this.props;
    const back = before.link === 'gone' && link !== 'gone';
    if (this.state.error && (back || before.place !== place)) this.setState({ error: null });
  }
  override render() {
    return this.state.error ? <Broken error={this.state.error} /> : this.props.children;
  }
}
