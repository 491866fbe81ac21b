package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.function.BiFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** A table as the source of a streaming query: what snapshots add, which Python finds. */
public final class TableStream implements Source, SupportsTriggerAvailableNow {
    private final SparkSession session;
    private final StructType columns;
    private final BiFunction answers;

    TableStream(SparkSession session, BiFunction answers) {
        this.session = session;
        this.answers = answers;
        this.columns = (StructType) DataType.fromJson(text(answer(request("columns"))));
    }

    @Override
    public StructType schema() {
        return columns;
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        answer(request("last"));
    }

    /** Limits are options of the stream, which Python knows. */
    @Override
    public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
            org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
        String from = start == null ? null : start.json();
        Object next = answer(request("next").put("start", from));
        return next == null ? null : new Position(text(next));
    }

    @Override
    public Dataset getBatch(Option start, Offset end) {
        String from = start.isDefined() ? ((Offset) start.get()).json() : null;
        return (Dataset) answer(request("batch").put("start", from).put("end", end.json()));
    }

    private static ObjectNode request(String use) {
        return new ObjectMapper().createObjectNode().put("use", use);
    }

    private Object answer(ObjectNode request) {
        Object answer = answers.apply(request.toString(), new Object[] {session});
        if (answer instanceof String) throw new IllegalStateException((String) answer);
        return answer;
    }

    private static String text(Object answer) {
        return new String((byte[]) answer, StandardCharsets.UTF_8);
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
