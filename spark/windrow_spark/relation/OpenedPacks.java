package windrow;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/** The packs of a plan, each with its footer or why it cannot be read. Runs on the driver only. */
public final class OpenedPacks {
    private static final int MOST_KEPT = 1000;
    // Enough to hide how long a store takes to answer, and each decodes one footer at a time.
    private static final ExecutorService THREADS = Executors.newFixedThreadPool(
        16, new FileCheck.Daemons("windrow-packs"));
    private static final Map KEPT = Collections.synchronizedMap(new LinkedHashMap());
    /** Packs that a task could not read. */
    private static final Set FAILED = Collections.synchronizedSet(new HashSet());

    final String[] uris;
    final long[] sizes;
    /** The footer of each pack; null where it cannot be read. */
    final PackFooter[] footers;
    private final String[] reasons;

    /**
     * Opens packs.
     *
     * @param packs URI, bytes and rows of each pack, a line each.
     */
    OpenedPacks(SparkSession session, String packs) {
        String[] all = packs.split("\n");
        this.uris = new String[all.length];
        this.sizes = new long[all.length];
        this.footers = new PackFooter[all.length];
        this.reasons = new String[all.length];
        Configuration settings = session.sessionState().newHadoopConf();
        List reads = new ArrayList();
        for (int i = 0; i < all.length; i++) {
            String[] pack = all[i].split(" ");
            uris[i] = pack[0];
            sizes[i] = Long.parseLong(pack[1]);
            reads.add(THREADS.submit(new Read(i, Long.parseLong(pack[2]), settings)));
        }
        try {
            for (int i = 0; i < reads.size(); i++) ((Future) reads.get(i)).get();
        } catch (InterruptedException error) {
            for (int i = 0; i < reads.size(); i++) ((Future) reads.get(i)).cancel(false);
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the query was stopped");
        } catch (ExecutionException error) {
            throw new IllegalStateException(error.getCause());
        }
    }

    /** Returns for each pack, a line, why it cannot be read: an empty line if it can. */
    public String why() {
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < reasons.length; i++) {
            lines.append(reasons[i].replace('\n', ' ')).append('\n');
        }
        return lines.toString();
    }

    /** Notes that a task could not read a pack: further queries read the files that it holds. */
    static void failed(String name) {
        FAILED.add(name);
    }

    /** Opens one of the packs. */
    private final class Read implements Callable {
        private final int pack;
        private final long rows;
        private final Configuration settings;

        Read(int pack, long rows, Configuration settings) {
            this.pack = pack;
            this.rows = rows;
            this.settings = settings;
        }

        @Override
        public Object call() {
            try {
                footers[pack] = footer();
                reasons[pack] = "";
            } catch (FileNotFoundException error) {
                reasons[pack] = "it is not there";
            } catch (Exception error) {
                boolean isOurs = error.getClass() == IOException.class;
                reasons[pack] = isOurs ? error.getMessage() : error.toString();
            } catch (VirtualMachineError error) {
                // A footer may be made to need more memory, or a deeper stack, than there is.
                reasons[pack] = error.toString();
            }
            return null;
        }

        private PackFooter footer() throws Exception {
            String uri = uris[pack];
            if (FAILED.contains(PackRows.name(uri))) throw new IOException("a task could not read it");
            Path path = PlannedFiles.path(uri);
            FileSystem system = path.getFileSystem(settings);
            FileStatus status = system.getFileStatus(path);
            if (!status.isFile()) throw new IOException("it is no file");
            if (status.getLen() != sizes[pack]) {
                throw new IOException("it has " + status.getLen() + " bytes, not " + sizes[pack]);
            }
            PackFooter footer = (PackFooter) KEPT.get(uri);
            if (footer == null || !footer.isOf(status)) {
                footer = PackFooter.of(system, status, settings);
                keep(uri, footer);
            }
            if (footer.rows() != rows) {
                throw new IOException("it has " + footer.rows() + " rows, not " + rows);
            }
            return footer;
        }
    }

    private static void keep(String uri, PackFooter footer) {
        synchronized (KEPT) {
            KEPT.put(uri, footer);
            if (KEPT.size() > MOST_KEPT) KEPT.remove(KEPT.keySet().iterator().next());
        }
    }
}
