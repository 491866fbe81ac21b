package windrow;

import java.lang.reflect.Method;
import java.net.URI;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.command.DataWritingCommand;
import org.apache.spark.sql.util.ExecutionListenerManager;
import org.apache.spark.sql.util.QueryExecutionListener;
import scala.Option;

/**
 * The places where commands of this application change files or partitions. Commands are noted
 * before they run; Spark tells their ends, which are numbered.
 */
final class OwnWrites {
    private static final int MOST_PLACES = 10000;
    // Commands that name a table without changing it.
    private static final String[] HARMLESS = {
        "Analyze", "Cache", "Describe", "Explain", "Set", "Show", "Uncache"};
    // Weak, as a command that fails before it starts never ends; others are held until they have ended.
    private static final Map RUNNING = new WeakHashMap();
    private static final Map LISTENING = new WeakHashMap();
    // By place, the number of the last command that ended there, oldest first.
    private static final Map ENDED = new LinkedHashMap();
    private static long last = 0L;
    private static long forgotten = 0L;

    private OwnWrites() {}

    /** Notes a command that is about to run, and returns the places of the files that it writes. */
    static Set begin(LogicalPlan command, Object session, Object tracker) {
        String name = command.getClass().getSimpleName();
        for (int i = 0; i < HARMLESS.length; i++) {
            if (name.startsWith(HARMLESS[i])) return new HashSet();
        }
        Set places = new HashSet();
        for (int i = 0; i < command.productArity(); i++) {
            add(places, command.productElement(i), session);
        }
        if (!places.isEmpty() && !isExplained()) {
            synchronized (OwnWrites.class) {
                if (tracker == null || !listen(session)) ended(places);
                else RUNNING.put(tracker, places);
            }
        }
        return command instanceof DataWritingCommand ? places : new HashSet();
    }

    private static void add(Set places, Object part, Object session) {
        try {
            if (part instanceof Option) {
                if (((Option) part).isDefined()) add(places, ((Option) part).get(), session);
            } else if (part instanceof Path) {
                places.add(text(qualified((Path) part)));
            } else if (part instanceof URI) {
                places.add(text(qualified(new Path((URI) part))));
            } else if (part instanceof CatalogStorageFormat) {
                add(places, ((CatalogStorageFormat) part).locationUri(), session);
            } else if (part instanceof CatalogTable) {
                add(places, ((CatalogTable) part).storage(), session);
            } else if (part instanceof TableIdentifier) {
                Object catalog = call(call(session, "sessionState"), "catalog");
                Method find = catalog.getClass().getMethod(
                    "getTableMetadata", new Class[] {TableIdentifier.class});
                add(places, find.invoke(catalog, new Object[] {part}), session);
            }
        } catch (Exception error) {
            // A table that does not exist has no files.
            return;
        }
    }

    /** Tells whether the command is only shown, and does not run. */
    private static boolean isExplained() {
        StackTraceElement[] calls = new Throwable().getStackTrace();
        for (int i = 0; i < calls.length; i++) {
            if (calls[i].getClassName().endsWith(".ExplainCommand")) return true;
        }
        return false;
    }

    private static boolean listen(Object session) {
        if (LISTENING.containsKey(session)) return true;
        try {
            ((ExecutionListenerManager) call(session, "listenerManager")).register(new Ends());
            LISTENING.put(session, Boolean.TRUE);
            return true;
        } catch (Exception error) {
            return false;
        }
    }

    public static final class Ends implements QueryExecutionListener {
        @Override
        public void onSuccess(String name, QueryExecution query, long nanoseconds) {
            end(query.tracker());
        }

        @Override
        public void onFailure(String name, QueryExecution query, Exception error) {
            end(query.tracker());
        }
    }

    static synchronized void end(Object tracker) {
        Set places = (Set) RUNNING.remove(tracker);
        if (places != null) ended(places);
    }

    private static void ended(Set places) {
        last++;
        Iterator each = places.iterator();
        while (each.hasNext()) {
            Object place = each.next();
            ENDED.remove(place);
            ENDED.put(place, Long.valueOf(last));
        }
        Iterator oldest = ENDED.values().iterator();
        while (ENDED.size() > MOST_PLACES) {
            forgotten = ((Long) oldest.next()).longValue();
            oldest.remove();
        }
    }

    /** Returns the number of the last command that has ended anywhere near a location. */
    static synchronized long lastOf(String location) {
        long newest = forgotten;
        Iterator each = ENDED.entrySet().iterator();
        while (each.hasNext()) {
            Map.Entry one = (Map.Entry) each.next();
            if (overlap((String) one.getKey(), location)) {
                newest = Math.max(newest, ((Long) one.getValue()).longValue());
            }
        }
        return newest;
    }

    /** Tells whether a command runs that may change something at a location. */
    static synchronized boolean isRunning(String location) {
        Iterator running = RUNNING.values().iterator();
        while (running.hasNext()) {
            if (overlaps((Set) running.next(), location)) return true;
        }
        return false;
    }

    static boolean overlaps(Set places, String location) {
        Iterator each = places.iterator();
        while (each.hasNext()) {
            if (overlap((String) each.next(), location)) return true;
        }
        return false;
    }

    private static boolean overlap(String one, String other) {
        return (one + "/").startsWith(other + "/") || (other + "/").startsWith(one + "/");
    }

    /** Returns a path as the text by which places are compared. */
    static String text(Path path) {
        String text = path.toString();
        return text.startsWith("file:///") ? "file:" + text.substring(7) : text;
    }

    private static Path qualified(Path path) throws Exception {
        if (path.toUri().getScheme() != null) return path;
        return path.getFileSystem(
            org.apache.spark.deploy.SparkHadoopUtil.get().conf()).makeQualified(path);
    }

    private static Object call(Object target, String name) throws Exception {
        return target.getClass().getMethod(name, new Class[0]).invoke(target, new Object[0]);
    }
}
