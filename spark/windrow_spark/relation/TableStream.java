package windrow;

import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** A table as the source of a streaming query: what snapshots add, which Python finds. */
public final class TableStream implements Source, SupportsTriggerAvailableNow {
    private final SparkSession session;
    private final StructType columns;
    private final BiFunction answers;

    TableStream(SparkSession session, StructType columns, BiFunction answers) {
        this.session = session;
        this.columns = columns;
        this.answers = answers;
    }

    @Override
    public StructType schema() {
        return columns;
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        ask("last", null, null);
    }

    /** Limits are options of the stream, which Python knows. */
    @Override
    public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
            org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
        String next = (String) ask("next", start == null ? null : start.json(), null);
        return next == null ? null : new Position(next);
    }

    @Override
    public Dataset getBatch(Option start, Offset end) {
        String from = start.isDefined() ? ((Offset) start.get()).json() : null;
        return (Dataset) ask("batch", from, end.json());
    }

    private Object ask(String use, String start, String end) {
        Object[] answer = (Object[]) answers.apply(use, new Object[] {start, end, session});
        if (answer[1] != null) throw new IllegalStateException((String) answer[1]);
        return answer[0];
    }

    @Override
    public void stop() {}

    // Scala's traits have these; classes must say so again.
    @Override
    public Option getOffset() {
        throw new UnsupportedOperationException();
    }

    @Override
    public void commit(Offset end) {}

    @Override
    public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) {}

    @Override
    public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
        throw new UnsupportedOperationException();
    }

    @Override
    public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String json) {
        throw new UnsupportedOperationException();
    }

    @Override
    public String toString() {
        return "windrow";
    }

    /** A position in a table's history. */
    public static final class Position extends Offset {
        private final String json;

        Position(String json) {
            this.json = json;
        }

        @Override
        public String json() {
            return json;
        }
    }
}
