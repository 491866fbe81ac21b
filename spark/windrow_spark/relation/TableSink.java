package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.streaming.StreamingQuery;

/** The sink of one run of a streaming query, whose batches Python takes. */
public final class TableSink implements Sink {
    private final SparkSession session;
    private final String mode;
    private final String partitionColumns;
    private BiFunction batches;

    TableSink(SparkSession session, String mode, String partitionColumns) {
        this.session = session;
        this.mode = mode;
        this.partitionColumns = partitionColumns;
    }

    /** The session that starts the query. */
    public SparkSession session() {
        return session;
    }

    /** The query's output mode, such as `Append`. */
    public String mode() {
        return mode;
    }

    /** The columns of `partitionBy`, as an array in JSON. */
    public String partitionColumns() {
        return partitionColumns;
    }

    void answerBy(BiFunction batches) {
        this.batches = batches;
    }

    @Override
    public void addBatch(long batch, Dataset rows) {
        String request =
            new ObjectMapper().createObjectNode().put("use", "add").put("batch", batch).toString();
        Object error = batches.apply(request, new Object[] {session, rows});
        if (error == null) return;
        String text = (String) error;
        // By its class Spark tells a query that is being stopped from one that has failed.
        if (isStopped()) throw new UncheckedIOException(new InterruptedIOException(text));
        throw new IllegalStateException(text);
    }

    /** Tells whether somebody stops the query, which fails at any step of a batch then. */
    private boolean isStopped() {
        String id = session.sparkContext().getLocalProperty("sql.streaming.queryId");
        StreamingQuery query = id == null ? null : session.streams().get(id);
        return query != null && !query.isActive();
    }

    @Override
    public String toString() {
        return "windrow";
    }
}
